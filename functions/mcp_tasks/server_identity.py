"""What the server tells clients about itself: its name, title, version and instructions.

The deployment writes them into the bundle, from `server.toml`. Instructions may be longer than the
4 KB that Lambda allows for all of a function's environment variables.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

FILE_NAME: Final = "server_identity.json"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The server, as it describes itself; self-reported, for display."""

    name: str
    version: str
    title: str = ""
    """For people; empty when there is none. Since revision 2025-06-18."""
    instructions: str = ""
    """What clients may tell their models; empty when there are none."""

    @property
    def implementation(self) -> dict[str, str]:
        """`serverInfo` (2026-07-28 schema, "Implementation")."""
        title = {"title": self.title} if self.title else {}
        return {"name": self.name, **title, "version": self.version}

    @property
    def hint(self) -> dict[str, str]:
        """The member `instructions` of a DiscoverResult or InitializeResult, if there are any."""
        return {"instructions": self.instructions} if self.instructions else {}

    @classmethod
    def read(cls, bundle: Path) -> ServerIdentity:
        """Read what `write` wrote into a bundle."""
        return cls(**json.loads((bundle / FILE_NAME).read_text(encoding="utf-8")))

    def write(self, bundle: Path) -> None:
        """Write it into a bundle."""
        text = json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))
        (bundle / FILE_NAME).write_text(text, encoding="utf-8")
