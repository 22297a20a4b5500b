"""Wheels of nothing, for tests of what installs them (Python Packaging Guide, "Binary distribution
format").
"""

from __future__ import annotations

import zipfile
from pathlib import Path


def write_wheel(
    folder: Path, name: str, version: str, *requires: str, tag: str = "py3-none-any"
) -> Path:
    """Write a wheel with one empty module and these requirements."""
    folder.mkdir(exist_ok=True)
    module = name.replace("-", "_")
    file = folder / f"{module}-{version}-{tag}.whl"
    info = f"{module}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {wanted}" for wanted in requires]
    contents = {
        f"{module}.py": "",
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(file, "w") as wheel:
        for path, text in {**contents, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)
    return file
