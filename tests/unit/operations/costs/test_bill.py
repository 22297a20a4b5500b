"""What `make cost` prints, and that the documentation says the same."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from operations.costs.__main__ import main
from operations.costs.bill import Bill
from operations.costs.load import Load
from operations.costs.prices import FILE, Prices
from operations.costs.usage import usage
from tests.paths import ROOT

PRICES = Prices.read("us-east-1")
PAGE = (ROOT / "docs" / "cost-and-scale.md").read_text()
DURABLE_PAGE = (ROOT / "docs" / "durable-functions.md").read_text()


def million(**load: object) -> float:
    """What a million more tasks cost."""
    return Bill.of(Load(**load), PRICES).of_a_task * 1_000_000  # type: ignore[arg-type]


def idle(**load: object) -> float:
    """What a stack costs that nobody calls."""
    return Bill.of(Load(tasks=0, **load), PRICES).total()  # type: ignore[arg-type]


def test_every_price_has_its_page_and_says_where_it_is_from() -> None:
    for name, price in PRICES.of.items():
        assert price.page.startswith("https://aws.amazon.com/"), name
        assert price.seen in ("page", "quoted", "memory"), name
        assert price.usd >= 0, name


def test_every_price_is_used_and_every_usage_has_one() -> None:
    everything = Load(encryption="customer", log_messages="on", auth="oauth")
    assert {each.price for each in usage(everything)} == PRICES.of.keys()


def test_a_line_is_its_quantity_times_its_price() -> None:
    bill = Bill.of(Load(tasks=2_000_000, polls=9), PRICES)
    (requests,) = [line for line in bill.lines if line.usage.what == "requests"]
    assert requests.usage.quantity == 20_000_000
    assert requests.usd == pytest.approx(70.0)
    assert bill.total() == pytest.approx(sum(bill.total(service=each) for each in bill.services))


def test_the_stack_that_nobody_calls_grows_with_no_task() -> None:
    bill = Bill.of(Load(tasks=0), PRICES)
    assert bill.total("task") == bill.of_a_task == 0
    assert bill.total("month") == pytest.approx(idle())


def test_the_page_has_what_the_command_prints() -> None:
    assert f"```\n{Bill.of(Load(), PRICES)}\n```" in PAGE


@pytest.mark.parametrize(
    "said",
    [
        f"| ${idle():.2f} a month; ${idle(alarms='off', dashboard='off'):.2f} with `alarms=off",
        f"with ten polls | ${million() / 1e6:.5f}: ",
        f"| ${(million(auth='oauth') - million()) / 1e6:.7f} more: the authorizer",
        f"| ${(million(transitions=4) - million()) / 1e6:.5f} more: four transitions",
        f"| one poll | ${million(polls=11) - million():.2f} a million |",
        f"with `auth=oauth` ${million(polls=11, auth='oauth') - million(auth='oauth'):.2f} |",
        f"| one change, with or without a subscription | ${million(reports=1) - million():.2f} a ",
        f"By an EventBridge rule: ${million(reports=1) - million():.2f} for one",
        f"(60 polls an hour, ${60 * (million(polls=11) - million()) / 1e6:.5f})",
        f"and ${round(1440 * (million(polls=11) - million()), -2):,.0f} a day. Polled",
        f"everything else about ${million(polls=0, transitions=0):.0f}.",
    ],
)
def test_the_page_says_what_comes_of_the_table(said: str) -> None:
    assert said in PAGE


def test_the_shares_of_a_task_are_those_of_the_page() -> None:
    bill = Bill.of(Load(), PRICES)
    names = ("Step Functions", "API Gateway", "CloudWatch Logs")
    shares = [f"{bill.total('task', name) / bill.total('task'):.0%}" for name in names]
    step_functions, gateway, logs = (share.replace("%", " %") for share in shares)
    assert f"{step_functions} Step Functions, {gateway} API Gateway, {logs} logs |" in PAGE


def test_a_kms_key_costs_what_the_page_says() -> None:
    load = Load(encryption="customer")
    requests = Bill.of(load, PRICES).total(service="KMS", what="requests")
    assert f"up to ${requests:.2f} for its calls" in PAGE
    alarm = idle(encryption="customer") - idle() - 1 - 4 / 24 * requests
    assert alarm == pytest.approx(PRICES.of["alarm_metric"].usd)


def test_the_price_of_an_operation_is_that_of_the_table() -> None:
    written = PRICES.of["dynamodb_write"].of(1)
    assert f"A write of the journal costs ${written:.9f} for each KB" in DURABLE_PAGE
    assert f"a transition ${PRICES.of['state_transition'].of(1):.6f}." in DURABLE_PAGE


def test_the_makefile_takes_every_option_of_a_load() -> None:
    line = re.search(r"^COST_OPTIONS = (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line is not None
    assert line[1].split() == ["region", *(field.name for field in fields(Load))]


def test_the_command_prints_the_bill(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks=5", "polls=0", "auth=oauth", "region=us-east-1"]) == 0
    assert capsys.readouterr().out == f"{Bill.of(Load(5, 0, auth='oauth'), PRICES)}\n"


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("region=eu-west-1", "has the prices of us-east-1"),
        ("auth=basic", "auth=basic: one of iam, oauth, none"),
        ("tasks=many", "tasks=many: a whole number"),
        ("taks=5", "taks=5: there is tasks, polls"),
    ],
)
def test_the_command_refuses_what_it_does_not_know(
    capsys: pytest.CaptureFixture[str], argument: str, why: str
) -> None:
    assert main([argument]) == 1
    assert why in capsys.readouterr().err


def test_another_region_is_another_table(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(FILE.read_text() + FILE.read_text().split("\n\n", 2)[2].replace("us-", "eu-"))
    assert Prices.read("eu-east-1", file).of == PRICES.of
