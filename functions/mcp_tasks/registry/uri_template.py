"""URI templates, and the URIs that match them (RFC 6570, levels 1 and 2).

`{name}` matches characters other than `/`, `?` and `#`; `{+name}` matches any. A variable ends at
the first occurrence of the text that follows it in the template. Its value is percent-decoded. The
RFC's other operators are refused: they expand lists and queries, whose values cannot be recovered
from a URI unambiguously.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(\+?)([A-Za-z_][A-Za-z0-9_]*)")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")


class UriTemplate:
    """A template that URIs are matched with. Raises ValueError for a text that is no template."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.variables: list[str] = []
        if not _URI.fullmatch(_EXPRESSION.sub("x", text)) or re.search(
            r"[{}]", _EXPRESSION.sub("", text)
        ):
            raise ValueError(f"{text!r} is not a URI, or a template of one")
        expressions = list(_EXPRESSION.finditer(text))
        starts = [e.start() for e in expressions] + [len(text)]
        pattern = re.escape(text[: starts[0]])
        for expression, end in zip(expressions, starts[1:], strict=True):
            variable = _VARIABLE.fullmatch(expression[1])
            if variable is None:
                raise ValueError(f"{text!r}: {expression[0]} is neither {{name}} nor {{+name}}")
            reserved, name = variable.groups()
            if name in self.variables:
                raise ValueError(f"{text!r}: {name} occurs twice")
            self.variables.append(name)
            literal = text[expression.end() : end]
            last = expression is expressions[-1]
            if not literal and not last:
                raise ValueError(f"{text!r}: no text follows {name}, so its end is unknown")
            part = f"(?P<{name}>{'.' if reserved else '[^/?#]'}+?){re.escape(literal)}"
            # Atomic, so that the regex never tries a later end: backtracking would be exponential.
            pattern += part if last else f"(?>{part})"
        self._pattern = re.compile(pattern, re.DOTALL)

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables' values in a URI, or None when it does not match."""
        match = self._pattern.fullmatch(uri)
        if match is None:
            return None
        return {name: unquote(value) for name, value in match.groupdict().items()}
