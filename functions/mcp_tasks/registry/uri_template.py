"""URI templates, and the URIs that match them (RFC 6570, levels 1 and 2).

`{name}` stands for a run of characters without `/`, `?` and `#`; `{+name}` for one with them. Both
are percent-decoded. The other operators of the RFC expand lists and queries, which no URI can be
read back from without doubt; they are refused.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(\+?)([A-Za-z_][A-Za-z0-9_]*)")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")


class UriTemplate:
    """One template, for matching. Raises ValueError when it is not one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.variables: list[str] = []
        if not _URI.fullmatch(_EXPRESSION.sub("x", text)) or re.search(
            r"[{}]", _EXPRESSION.sub("", text)
        ):
            raise ValueError(f"{text!r} is not a URI, or a template of one")
        pattern, end = "", 0
        for expression in _EXPRESSION.finditer(text):
            variable = _VARIABLE.fullmatch(expression[1])
            if variable is None:
                raise ValueError(f"{text!r}: {expression[0]} is neither {{name}} nor {{+name}}")
            reserved, name = variable.groups()
            if name in self.variables:
                raise ValueError(f"{text!r}: {name} occurs twice")
            self.variables.append(name)
            pattern += re.escape(text[end : expression.start()])
            pattern += f"(?P<{name}>.+)" if reserved else f"(?P<{name}>[^/?#]+)"
            end = expression.end()
        self._pattern = re.compile(pattern + re.escape(text[end:]), re.DOTALL)

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables' values in a URI, or None when it does not match."""
        match = self._pattern.fullmatch(uri)
        if match is None:
            return None
        return {name: unquote(value) for name, value in match.groupdict().items()}
