"""The unpacked code of functions on the emulator: one folder for all processes of a function."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path
from threading import Lock
from typing import Any


class Code(zipfile.ZipFile):
    """A function's code, unpacked once: all its processes read the same folder."""

    _unpacking = Lock()

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Replace `path`, an empty folder, by a link to the unpacked code."""
        archive = Path(str(self.filename))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        folder = Path(tempfile.gettempdir()) / f"code-{digest}"
        with self._unpacking:
            if not folder.exists():
                unfinished = folder.with_suffix(".unfinished")
                super().extractall(unfinished, members, pwd)
                unfinished.rename(folder)
        Path(path).rmdir()
        Path(path).symlink_to(folder)
        archive.unlink()
