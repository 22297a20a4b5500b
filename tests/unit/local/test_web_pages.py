"""Servers of this machine refuse what a web page may have sent.

The refused headers are those that Chromium sent (tests/integration/test_web_pages.py).
"""

from __future__ import annotations

import pytest

from local.web_pages import FOREIGN_HOST, FROM_A_PAGE, refusal

LOCAL = ("Host", "127.0.0.1:4566")
EVIL = "http://evil.example:8000"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:4566",
        "127.0.0.1",
        "localhost:4566",
        "LOCALHOST:1",
        "[::1]:4566",
        "a1b2c3d4.execute-api.localhost:4566",
        "a_bucket.with-dots.s3.us-east-1.localhost:4566",
    ],
)
def test_a_program_that_names_this_machine_passes(host: str) -> None:
    assert refusal([("host", host), ("user-agent", "aws-cli"), ("accept", "*/*")]) is None


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.example:4566"],
        ["localhost.evil.example"],
        ["127.0.0.1.evil.example"],
        ["evil-localhost.example"],
        ["notlocalhost"],
        ["localhost."],
        [".localhost"],
        ["0.0.0.0:4566"],
        ["127.0.0.2"],
        ["192.168.1.2:4566"],
        ["2130706433"],
        ["[::]:4566"],
        ["[::ffff:127.0.0.1]"],
        ["localhost:4566:1"],
        ["localhost:evil.example"],
        ["evil.example#.localhost"],
        ["evil.example/localhost"],
        ["user@localhost"],
        ["localhost\n"],
        ["localhost, evil.example"],
        ["localhost", "evil.example"],
        ["localhost", "localhost"],
    ],
)
def test_another_host_is_refused(hosts: list[str]) -> None:
    assert refusal([("Host", host) for host in hosts]) == FOREIGN_HOST


@pytest.mark.parametrize("origin", [EVIL, "null", "", "http://127.0.0.1:4566", "https://localhost"])
def test_an_origin_is_refused(origin: str) -> None:
    assert refusal([LOCAL, ("Origin", origin)]) == FROM_A_PAGE
    assert refusal([("ORIGIN", origin), LOCAL, ("Sec-Fetch-Site", "same-origin")]) == FROM_A_PAGE


@pytest.mark.parametrize(
    "sites",
    [["cross-site"], ["same-site"], [""], ["None"], ["none", "cross-site"], ["none, cross-site"]],
)
def test_a_request_from_another_site_is_refused(sites: list[str]) -> None:
    """An image or a script: a browser sends no Origin with it."""
    assert refusal([LOCAL, *(("sec-fetch-site", site) for site in sites)]) == FROM_A_PAGE


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_an_address_that_a_person_types_passes(site: str) -> None:
    assert refusal([LOCAL, ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate")]) is None
