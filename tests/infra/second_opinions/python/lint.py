"""Read {name: definition as text} and print {"statelint": {name: [finding]}}."""

from __future__ import annotations

import json
import sys

from statelint.config import Config
from statelint.linter import Linter
from statelint.problem import ProblemType

if __name__ == "__main__":
    # FLOAT: `"BackoffRate": 2` is a number as good as 2.0.
    config = Config(ignored_problem_types={ProblemType.FLOAT})
    definitions = json.load(sys.stdin)
    findings = {name: Linter.validate(text, config) for name, text in definitions.items()}
    json.dump({"statelint": findings}, sys.stdout)
