"""A hash of each list that clients can see, by which it shows that a deployment has changed one."""

from __future__ import annotations

import hashlib
import json

from .catalogue import Catalogue


def list_versions(catalogue: Catalogue) -> dict[str, str]:
    """A hash of each list that clients can see."""
    entries = {
        "tools": catalogue.tools.values(),
        "prompts": catalogue.prompts.values(),
        "resources": catalogue.resources.values(),
    }
    texts = {
        name: json.dumps([entry.definition for entry in each], sort_keys=True)
        for name, each in entries.items()
    }
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}
