"""The tokens of docs/issuers.md, checked as a server does that was deployed as the page says.

The page's tokens have the headers and claims that each issuer documents. Only the times, the key's
id and the signature are of the test.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from infra.audiences import NAMES_CLIENTS
from infra.auth_options import OAuth
from infra.settings import ENDPOINT, Settings
from mcp_tasks.authorization.jwks import Jwks
from mcp_tasks.authorization.tokens import Grant, InvalidToken, TokenVerifier
from tests.integration.support.issuer import Signer, compact, private_key, signature
from tests.paths import ROOT

NOW: Final = 1_800_000_000
PAGE: Final = (ROOT / "docs" / "issuers.md").read_text()
BOUND_TO: Final = {
    "Amazon Cognito": ["aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"] * 2 + ["2example34567890"],
    "Microsoft Entra ID": [
        "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ",
        "33334444-dddd-5555-eeee-6666ffff7777",
    ],
    "Auth0": ["auth0|123456"] * 2 + ["awZfdIir8YFdGZWkvCejDoUb7SjTDicx@clients"],
    "Okta": ["user@example.com", "0oa1abcdefGHIJKLmnop"],
    "Keycloak": ["f1c4f64e-2c0c-4cda-8c9f-9f3f8f3a2b0e", "0e3b5c5e-5a39-4c9b-9f0c-0d2a7b1f6a11"],
}
"""Issuer -> whom the tasks of each of its tokens belong to."""


@dataclass(frozen=True, slots=True)
class Documented:
    """One issuer, as the page has it."""

    settings: Settings
    tokens: list[dict[str, Any]]

    @property
    def oauth(self) -> OAuth:
        """What its tokens have to say."""
        assert self.settings.oauth is not None
        return self.settings.oauth

    @property
    def audiences(self) -> frozenset[str]:
        """What the authorizer is told (`infra/rest_api.py`)."""
        return frozenset(self.oauth.audiences or [f"https://{self.settings.domain}{ENDPOINT}"])

    def verify(self, token: dict[str, Any]) -> Grant:
        """Sign a token, and verify it as the authorizer does."""
        issuer = Signer(self.oauth.issuer, ["RS256"])
        own = urlsplit(self.oauth.issuer).path.rstrip("/")

        def document(url: str) -> Any:
            if url.endswith("/keys"):
                return {"keys": [issuer.jwk("RS256")]}
            assert urlsplit(url).path == f"{own}/.well-known/openid-configuration"
            return {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}

        claims = {**token["claims"], "iat": NOW, "exp": NOW + 60}
        if "nbf" in claims:
            claims["nbf"] = NOW
        header = {**token["header"], "kid": issuer.key_id("RS256")}
        signed = compact(header, claims, signature("RS256", private_key("RS256", 0)))
        verifier = TokenVerifier(
            issuer.url,
            self.audiences,
            Jwks(issuer.url, document),
            lambda: NOW,
            at_jwt_only=self.oauth.token_typ == "at+jwt",
        )
        return verifier.verify(signed)


def documented(name: str) -> Documented:
    """What the page says of an issuer."""
    section = re.split(r"^## ", PAGE.split(f"\n## {name}\n")[1], flags=re.MULTILINE)[0]
    (command,) = re.findall(r"^make deploy (.*)$", section, re.MULTILINE)
    options = dict(word.split("=", 1) for word in shlex.split(command))
    tokens = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]
    return Documented(Settings.from_context(options.get, ROOT), tokens)


EACH: Final = [(name, n) for name, subjects in BOUND_TO.items() for n in range(len(subjects))]


def test_every_token_of_the_page_is_checked() -> None:
    assert {name: len(documented(name).tokens) for name in BOUND_TO} == {
        name: len(subjects) for name, subjects in BOUND_TO.items()
    }
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert sections == ["What every issuer has to do", *BOUND_TO]


@pytest.mark.parametrize(("name", "n"), EACH)
def test_a_token_as_the_issuer_documents_it_is_good(name: str, n: int) -> None:
    issuer = documented(name)
    grant = issuer.verify(issuer.tokens[n])
    assert grant.principal == f"{issuer.oauth.issuer}|{BOUND_TO[name][n]}"
    names = issuer.oauth.scope_names
    assert names.short(grant.scopes) >= set(issuer.oauth.scopes)
    assert issuer.oauth.scopes == ("tools",)


@pytest.mark.parametrize(("name", "n"), EACH)
def test_the_same_token_for_another_server_is_not(name: str, n: int) -> None:
    issuer = documented(name)
    token = issuer.tokens[n]
    other = {**token["claims"], "client_id": "another"}
    if "aud" in other:
        other["aud"] = "https://other.example.com/mcp"
    with pytest.raises(InvalidToken, match="wrong_aud"):
        issuer.verify({**token, "claims": other})


@pytest.mark.parametrize("name", BOUND_TO)
def test_clients_ask_for_scopes_by_the_name_that_the_issuer_wants(name: str) -> None:
    oauth = documented(name).oauth
    long = "https://mcp.example.com/mcp/tools" if NAMES_CLIENTS.fullmatch(oauth.issuer) else "tools"
    assert oauth.scope_names.long(oauth.scopes) == (long,)


# ---- What the page says besides ------------------------------------------------------------------


def changed(name: str, n: int, **claims: Any) -> Grant:
    """Verify a token of the page in which these claims differ; None for one that is left out."""
    issuer = documented(name)
    merged = {**issuer.tokens[n]["claims"], **claims}
    token = {**issuer.tokens[n], "claims": {k: v for k, v in merged.items() if v is not None}}
    return issuer.verify(token)


def test_each_of_cognitos_app_clients_that_is_listed_may_call() -> None:
    for client in ("1example23456789", "2example34567890"):
        assert changed("Amazon Cognito", 1, client_id=client)
    with pytest.raises(InvalidToken, match="wrong_aud"):
        changed("Amazon Cognito", 1, client_id="3example45678901")


def test_roles_of_a_user_of_entra_are_no_scopes() -> None:
    assert changed("Microsoft Entra ID", 0).scopes == {"tools"}
    assert changed("Microsoft Entra ID", 0, scp=None).scopes == set()
    assert changed("Microsoft Entra ID", 0, scp=None, oid=None, roles=["tools"]).scopes == set()


def test_an_application_of_entra_is_known_by_either_claim() -> None:
    assert changed("Microsoft Entra ID", 1, idtyp="app", oid=None).scopes == {"tools"}
    assert changed("Microsoft Entra ID", 1, oid="22223333-cccc-4444-dddd-5555eeee6666").scopes == (
        set()
    )


def test_entras_tokens_of_version_1_have_another_issuer() -> None:
    with pytest.raises(InvalidToken, match="wrong_iss"):
        changed(
            "Microsoft Entra ID",
            0,
            iss="https://sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/",
        )


def test_auth0s_permissions_are_not_read() -> None:
    assert changed("Auth0", 0, scope="openid").scopes == {"openid"}


def test_a_token_of_auth0_for_nothing_but_userinfo_is_refused() -> None:
    with pytest.raises(InvalidToken, match="wrong_aud"):
        changed("Auth0", 0, aud="https://my-domain.auth0.com/userinfo")


def test_keycloaks_tokens_without_the_mapper_are_refused() -> None:
    for audience in (None, "account"):
        with pytest.raises(InvalidToken, match="wrong_aud"):
            changed("Keycloak", 0, aud=audience)


def test_keycloaks_lightweight_tokens_without_a_subject_are_refused() -> None:
    with pytest.raises(InvalidToken, match="invalid_sub"):
        changed("Keycloak", 0, sub=None)


@pytest.mark.parametrize(
    ("name", "claims", "reason"),
    [
        ("Amazon Cognito", {"token_use": "id"}, "wrong_token_use"),
        ("Microsoft Entra ID", {"nonce": "12345", "scp": None}, "not_an_access_token"),
        ("Auth0", {"nonce": "12345", "scope": None}, "not_an_access_token"),
        ("Okta", {"at_hash": "fPlsvVszI29LU2UhDyJ9vg", "scp": None}, "not_an_access_token"),
        ("Keycloak", {"typ": "ID", "scope": None}, "wrong_typ"),
    ],
)
def test_an_id_token_is_no_access_token(name: str, claims: dict[str, Any], reason: str) -> None:
    """Each issuer's ID tokens have what tells them apart, also where their audience would do."""
    with pytest.raises(InvalidToken, match=f"^{reason}$"):
        changed(name, 0, **claims)
