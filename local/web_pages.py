"""Refuse what a web page may have sent to a server of this machine.

A page of any origin can make its visitor's browser send requests to 127.0.0.1. What the browser
says about itself tells them from a program's:

- `Origin` names the page (Fetch standard, "Origin header"). A browser leaves it out of some GETs.
- `Sec-Fetch-Site` tells whether the page's site is the server's (Fetch Metadata Request Headers).
  Pages cannot set or remove it.
- `Host` is the name by which the browser reached the server. A page that made its own name resolve
  to 127.0.0.1 (DNS rebinding) is of the server's origin, but the name remains the page's.

Standard library only: the emulator and the local gateway use this, each in its own environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

LOCAL_HOST: Final = re.compile(
    r"(127\.0\.0\.1|\[::1\]|([a-z0-9_-]+\.)*localhost)(:[0-9]{1,5})?", re.IGNORECASE
)
"""Names that lead to the loopback interface only, whatever a name server says (RFC 6761, section
6.3). The port does not tell pages apart: it may be that of a tunnel or of a proxy.
"""
FOREIGN_HOST: Final = "Host is no name of this machine; use 127.0.0.1 or localhost"
FROM_A_PAGE: Final = "web pages may not call this server"


def refusal(headers: Iterable[tuple[str, str]]) -> str | None:
    """Why a request with these headers is refused; None when it is not.

    Programs send neither `Origin` nor `Sec-Fetch-Site`, and pass. So does an address that a person
    types into a browser (`Sec-Fetch-Site: none`). These servers have no pages of their own: every
    Origin is a foreign one.
    """
    values: dict[str, list[str]] = {"host": [], "origin": [], "sec-fetch-site": []}
    for name, value in headers:
        values.get(name.lower(), []).append(value)
    if len(values["host"]) != 1 or not LOCAL_HOST.fullmatch(values["host"][0]):
        return FOREIGN_HOST
    if values["origin"] or not {"none", "same-origin"}.issuperset(values["sec-fetch-site"]):
        return FROM_A_PAGE
    return None
