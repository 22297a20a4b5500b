"""Where an issuer's signing keys are found.

Sources: OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks.authorization.discovery import check_issuer, fetch_key_set
from mcp_tasks.authorization.http_json import FetchError
from mcp_tasks.authorization.jwks import Jwks
from tests.unit.authorization.issuer_documents import ISSUER, KEYS, OAUTH, OPENID, Web


@pytest.mark.parametrize(
    ("issuer", "openid", "oauth"),
    [
        (ISSUER, OPENID, OAUTH),
        (f"{ISSUER}/", OPENID, OAUTH),
        (
            "https://login.example",
            "https://login.example/.well-known/openid-configuration",
            "https://login.example/.well-known/oauth-authorization-server",
        ),
    ],
)
def test_an_issuer_describes_itself_as_openid_or_as_oauth(
    web: Web, issuer: str, openid: str, oauth: str
) -> None:
    described = {"issuer": issuer, "jwks_uri": KEYS}
    for location in (openid, oauth):
        web.documents = {location: described, KEYS: {"keys": ["k"]}}
        web.fetches.clear()
        assert fetch_key_set(issuer, web) == ["k"]
        assert list(web.fetches) == list(dict.fromkeys([openid, location, KEYS]))


def test_an_issuer_that_does_not_answer_is_asked_once(web: Web) -> None:
    web.failure = "timeout"
    with pytest.raises(FetchError, match="timeout"):
        fetch_key_set(ISSUER, web)
    assert web.fetches == {OPENID: 1}


@pytest.mark.parametrize("issuer", [f"{ISSUER}/", "https://LOGIN.example/tenant", "", None])
def test_metadata_of_another_issuer_is_refused(web: Web, issuer: str | None) -> None:
    """RFC 8414, section 3.3: "MUST be identical"."""
    web.documents[OPENID] = {"issuer": issuer, "jwks_uri": KEYS}
    with pytest.raises(FetchError, match="another issuer's"):
        fetch_key_set(ISSUER, web)


@pytest.mark.parametrize("described", [None, [], "text"])
def test_malformed_metadata_is_refused(web: Web, described: Any) -> None:
    web.documents[OPENID] = described
    with pytest.raises(FetchError, match="no JSON object"):
        fetch_key_set(ISSUER, web)


@pytest.mark.parametrize("found", [None, [], {}, {"keys": None}, {"keys": {}}])
def test_a_malformed_key_set_is_refused(web: Web, found: Any) -> None:
    web.documents[KEYS] = found
    with pytest.raises(FetchError, match="no key set at jwks_uri"):
        fetch_key_set(ISSUER, web)


@pytest.mark.parametrize(
    "location",
    [
        None,
        7,
        "http://keys.example/all",
        "http://127.0.0.1/all",
        "file:///etc/passwd",
        "ftp://keys.example/all",
        "//keys.example/all",
        "https://[/all",
    ],
)
def test_jwks_uri_has_to_be_an_https_url(web: Web, location: Any) -> None:
    web.documents[OPENID] = {"issuer": ISSUER, "jwks_uri": location}
    web.documents[location] = {"keys": []}
    with pytest.raises(FetchError, match="jwks_uri is no https URL"):
        fetch_key_set(ISSUER, web)
    assert location not in web.fetches


@pytest.mark.parametrize(
    ("location", "allowed"),
    [
        ("http://127.0.0.1:9/all", True),
        ("http://localhost/all", True),
        ("http://[::1]/all", True),
        ("https://keys.example/all", True),
        ("http://keys.example/all", False),
        ("http://127.0.0.1.example/all", False),
        ("file:///etc/passwd", False),
        ("file://localhost/etc/passwd", False),
        ("ftp://127.0.0.1/all", False),
    ],
)
def test_an_issuer_on_this_machine_may_use_http_on_this_machine(
    location: str, allowed: bool
) -> None:
    issuer = "http://127.0.0.1:8000"
    web = Web()
    web.documents[f"{issuer}/.well-known/openid-configuration"] = {
        "issuer": issuer,
        "jwks_uri": location,
    }
    web.documents[location] = {"keys": ["k"]}
    if allowed:
        assert fetch_key_set(issuer, web) == ["k"]
    else:
        with pytest.raises(FetchError, match="jwks_uri is no https URL"):
            fetch_key_set(issuer, web)


@pytest.mark.parametrize(
    "issuer",
    [
        "",
        "login.example",
        "http://login.example",
        "http://127.0.0.1.example",
        "file:///keys",
        "file://localhost/keys",
        "https://",
        "https://login.example/?tenant=1",
        "https://login.example/#a",
        "https://login.example/\n",
        "https://login.example/é",
    ],
)
def test_an_invalid_issuer_is_an_error_of_the_deployment(issuer: str) -> None:
    """RFC 8414, section 2: https, "no query or fragment components"."""
    with pytest.raises(ValueError, match="the issuer"):
        Jwks(issuer)


@pytest.mark.parametrize("issuer", [ISSUER, f"{ISSUER}/", "http://127.0.0.1:9", "http://localhost"])
def test_a_valid_issuer(issuer: str) -> None:
    check_issuer(issuer)
