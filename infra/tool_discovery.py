"""Import the tools of a folder, and name the file and the line of an error in it."""

from __future__ import annotations

import traceback
from pathlib import Path

from mcp_tasks.registry.catalogue import Catalogue


def discover(folder: Path) -> Catalogue:
    """Import the folder's modules and collect their tools.

    Raises ValueError, which names the file and the line, for any error of a module; for a folder
    that Python does not import; and when nothing is declared.
    """
    try:
        catalogue = Catalogue.discover(folder)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        places = [f for f in frames if Path(f.filename).is_relative_to(folder)]
        place = f"{places[-1].filename}, line {places[-1].lineno}: " if places else ""
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{place}{kind}{error}") from error
    for part in sorted(folder.iterdir()):
        if any(part.glob("*.py")) and not (part / "__init__.py").is_file():
            raise ValueError(f"{part} has no __init__.py, so its tools are not found; add one")
    if not (catalogue.tools or catalogue.resources or catalogue.prompts):
        raise ValueError(
            f"{folder} declares no tool, resource or prompt; write one with @tool, @resource or "
            "@prompt in a module of it"
        )
    return catalogue
