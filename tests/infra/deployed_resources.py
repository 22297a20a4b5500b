"""What an update of a deployed stack must keep: logical ids, and properties that are fixed.

    python -m tests.infra.deployed_resources TEMPLATE   add a template's to deployed_resources.json

A logical id follows from a construct's path. Whoever moves or renames a construct, or changes a
property that is fixed at a resource's creation, has CloudFormation replace the resource.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from operations.preflight.replaced_resources import FIXED, fixed_properties

FILE: Final = Path(__file__).with_suffix(".json")


def kept(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Construct path -> type, logical id and fixed properties, of what an update must keep."""
    return {
        _path(resource): {
            "Type": resource["Type"],
            "LogicalId": name,
            "Properties": fixed_properties(resource),
        }
        for name, resource in template["Resources"].items()
        if resource["Type"] in FIXED
    }


def _path(resource: Mapping[str, Any]) -> str:
    """Without the stack's name, which does not count in logical ids."""
    path: str = resource["Metadata"]["aws:cdk:path"]
    return path.split("/", 1)[1]


if __name__ == "__main__":
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    found |= kept(json.loads(Path(sys.argv[1]).read_text()))
    FILE.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
