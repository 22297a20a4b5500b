"""Hosts that take too much: an old TLS, or requests past the domain."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from operations.verify import domain_checks
from operations.verify.check import Outcome, outcome_of
from operations.verify.deployed import Deployed
from operations.verify.domain_checks import default_url
from operations.verify.endpoint import TASKS, Endpoint
from tests.unit.operations.verify.account import Account
from tests.unit.operations.verify.serving import Answering, Answers, serving

CHECKS: Final = {check.title: check for check in domain_checks.CHECKS}
NO_RULES: Final = "the stack has no domain"


def _domain(mode: str, policy: str) -> dict[str, Any]:
    configurations = [{"SecurityPolicy": policy}]
    return {"RoutingMode": mode, "DomainNameConfigurations": configurations}


def test_a_domain_with_the_stacks_rules_passes() -> None:
    assert outcome_of(CHECKS["Routing rules"], Account().deployed()).verdict == "passed"


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        (
            {"get_domain_name": _domain("API_MAPPING_ONLY", "TLS_1_2")},
            "mcp.example.com is API_MAPPING_ONLY: it follows no rule",
        ),
        (
            {"get_domain_name": _domain("ROUTING_RULE_ONLY", "TLS_1_0")},
            "mcp.example.com takes TLS_1_0",
        ),
        ({"list_routing_rules": {"RoutingRules": []}}, "1 rules of the stack are missing"),
    ],
)
def test_a_domain_that_leads_elsewhere_is_found(wrong: dict[str, Any], seen: str) -> None:
    outcome = outcome_of(CHECKS["Routing rules"], Account(**wrong).deployed())
    assert (outcome.verdict, outcome.seen) == ("FAILED", seen)


@pytest.mark.parametrize("title", ["Routing rules", "Closed default host"])
def test_a_stack_without_a_domain_is_not_tried(title: str) -> None:
    account = Account()
    account.resources = [one for one in account.resources if "RoutingRule" not in one[0]]
    outcome = outcome_of(CHECKS[title], account.deployed())
    assert (outcome.verdict, outcome.seen) == ("not tried", NO_RULES)


@pytest.mark.parametrize("title", ["Routing rules", "Closed default host"])
def test_what_the_credentials_may_not_read_is_not_tried(title: str) -> None:
    wrong = {"get_domain_name": "AccessDeniedException", "get_rest_api": "AccessDeniedException"}
    outcome = outcome_of(CHECKS[title], Account(**wrong).deployed())
    assert outcome.verdict == "not tried"
    assert outcome.seen.startswith("your credentials may not call get_")


def test_the_default_host_is_named_by_region_and_partition() -> None:
    stack = Account().deployed().account()
    url = "https://a1.execute-api.eu-west-1.amazonaws.com/physical-ApiRestApiDeploymentStagev11A/"
    assert default_url(stack, "a1") == url


@pytest.mark.parametrize(
    ("disabled", "status", "verdict", "seen"),
    [
        (True, 403, "passed", "403 from 1 of 1 APIs"),
        (True, 404, "FAILED", "the default endpoint of notes answers HTTP 404, not 403"),
        (False, 403, "FAILED", "the default endpoint of notes is not disabled"),
    ],
)
def test_a_default_host_that_answers_is_found(
    monkeypatch: pytest.MonkeyPatch, disabled: bool, status: int, verdict: str, seen: str
) -> None:
    account = Account(get_rest_api={"name": "notes", "disableExecuteApiEndpoint": disabled})
    with serving({"GET": (status, {}, {})}) as url:
        monkeypatch.setattr(domain_checks, "default_url", lambda *_: url)
        outcome = outcome_of(CHECKS["Closed default host"], account.deployed())
    assert outcome.verdict == verdict
    assert outcome.seen.startswith(seen)


# ---- TLS -----------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate with its key, which this process trusts."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(pem + signed.public_bytes(Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return file


@pytest.fixture
def tls_host(certificate: Path) -> Iterator[Callable[[ssl.TLSVersion], str]]:
    """Serve TLS from a version on."""
    sockets: list[tuple[socket.socket, threading.Thread]] = []

    def start(least: ssl.TLSVersion) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = least
        listening = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=_shake_hands, args=(listening, context))
        thread.start()
        sockets.append((listening, thread))
        return f"https://localhost:{listening.getsockname()[1]}/mcp"

    yield start
    for listening, thread in sockets:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        listening.close()


def _shake_hands(listening: socket.socket, context: ssl.SSLContext) -> None:
    """Shake hands with everybody, and hang up."""
    while True:
        try:
            accepted, _ = listening.accept()
        except OSError:
            return
        try:
            with accepted, context.wrap_socket(accepted, server_side=True) as secured:
                secured.recv(1)
        except OSError:
            continue


def _tls(url: str) -> Outcome:
    return outcome_of(CHECKS["TLS"], Deployed(Endpoint(url), False, None))


def test_a_host_of_tls_1_2_passes(tls_host: Callable[[ssl.TLSVersion], str]) -> None:
    outcome = _tls(tls_host(ssl.TLSVersion.TLSv1_2))
    assert outcome.verdict == "passed", outcome
    assert outcome.seen.endswith(": TLSv1.3")


def test_a_host_that_takes_tls_1_1_is_found(tls_host: Callable[[ssl.TLSVersion], str]) -> None:
    outcome = _tls(tls_host(ssl.TLSVersion.TLSv1_1))
    assert outcome.verdict == "FAILED", outcome
    assert outcome.seen.endswith(" takes TLS 1.1")


def test_a_host_that_is_not_there_is_no_refusal() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    listening.close()
    assert _tls(f"https://localhost:{port}/mcp").verdict == "FAILED"


@pytest.mark.parametrize("offers", ["no version", "no signature"])
def test_a_machine_without_tls_1_1_says_nothing_of_the_host(
    tls_host: Callable[[ssl.TLSVersion], str], monkeypatch: pytest.MonkeyPatch, offers: str
) -> None:
    """With OpenSSL 3, TLS 1.1 has no signature that security level 1 takes."""
    if offers == "no version":
        monkeypatch.setattr(ssl, "HAS_TLSv1_1", False)
    else:
        monkeypatch.setattr(domain_checks, "OLD_CIPHERS", "ALL:@SECLEVEL=2")
    outcome = _tls(tls_host(ssl.TLSVersion.TLSv1_1))
    assert outcome.verdict == "not tried", outcome
    assert "TLS 1.1" in outcome.seen


def test_an_endpoint_of_this_machine_has_no_tls() -> None:
    assert _tls("http://127.0.0.1:1/mcp").seen == "the endpoint's URL is not https"


def test_apis_of_the_stack_are_tried_too(
    tls_host: Callable[[ssl.TLSVersion], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = Account().deployed()
    deployed.endpoint = Endpoint(tls_host(ssl.TLSVersion.TLSv1_2))
    old = tls_host(ssl.TLSVersion.TLSv1_1)
    monkeypatch.setattr(domain_checks, "default_url", lambda *_: old)
    outcome = outcome_of(CHECKS["TLS"], deployed)
    assert (outcome.verdict, outcome.seen) == ("FAILED", f"{old.split('/')[2]} takes TLS 1.1")


# ---- Mcp-Name ------------------------------------------------------------------------------------

TASK: Final = f"c1-{'0' * 32}"


class _Cell(Answering):
    """Knows one task, and says `elsewhere` of all others."""

    def take(self, message: dict[str, Any]) -> None:
        if message["method"] == "tasks/get":
            assert "Mcp-Name" not in self.headers
            declared = message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert TASKS in declared["extensions"]
            known = message["params"]["taskId"] == TASK
            self.answer("known" if known else "elsewhere")
        else:
            self.answer(message["method"])


@pytest.mark.parametrize(
    ("code", "text", "verdict", "seen"),
    [
        (-32602, "send Mcp-Name", "passed", "the first cell is c1; for a task of another one"),
        (-32602, "Task not found", "FAILED", "the error does not name Mcp-Name: -32602: Task not"),
        (-32603, "Mcp-Name", "FAILED", "a task of another cell: -32603: Mcp-Name"),
    ],
)
def test_a_cell_that_does_not_say_what_is_missing_is_found(
    code: int, text: str, verdict: str, seen: str
) -> None:
    created = {"resultType": "task", "taskId": TASK}
    answers: Answers = {
        "tools/call": (200, {}, {"result": created}),
        "known": (200, {}, {"result": {"taskId": TASK}}),
        "elsewhere": (200, {}, {"error": {"code": code, "message": text}}),
    }
    with serving(answers, _Cell) as url:
        deployed = Deployed(Endpoint(url), False, None, tools={"simulate_savings": {}})
        outcome = outcome_of(CHECKS["Find a task without Mcp-Name"], deployed)
    assert outcome.verdict == verdict, json.dumps(outcome.seen)
    assert outcome.seen.startswith(seen)
