"""What `cdk synth` wrote, for checks to read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Written = Callable[[dict[str, Any]], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write a template as the assembly of the stack `notes`."""

    def write(template: dict[str, Any]) -> Path:
        stack = {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": "notes.template.json"},
        }
        manifest = {"artifacts": {"notes": stack, "Tree": {"type": "cdk:tree"}}}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        (tmp_path / "notes.template.json").write_text(json.dumps(template))
        return tmp_path

    return write
