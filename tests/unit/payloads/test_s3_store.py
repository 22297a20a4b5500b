"""Large values in S3: written once, read by those whom they belong to, and by links."""

from __future__ import annotations

import json
import re
import threading
import traceback
import urllib.parse
from collections.abc import Callable
from io import BytesIO
from types import SimpleNamespace
from typing import Any, Final

import pytest
from botocore.exceptions import (
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from hypothesis import given
from hypothesis import strategies as st
from moto.s3.models import s3_backends

from mcp_tasks.aws.clients import S3_CONFIG, aws_client
from mcp_tasks.payloads.offloading import MAX_OBJECT_BYTES, MAX_RESOLVED_BYTES, MIN_OFFLOADED_BYTES
from mcp_tasks.payloads.pointer import POINTER, PayloadPointer, payload_prefix, pointer_of
from mcp_tasks.payloads.s3_store import (
    MAX_READ_ATTEMPTS,
    PayloadNotFound,
    PayloadStore,
    PayloadTooLarge,
)
from tests.unit.support.aws import PAYLOADS, Calls, create_payloads, real

TASK: Final = f"c1-{'0' * 32}"
PREFIX: Final = payload_prefix("flow", TASK)
SECRET: Final = "hunter2"


@pytest.fixture
def calls(aws: Calls, payloads: PayloadStore) -> Calls:
    """The calls that are made to an empty bucket."""
    return aws


def stored() -> dict[str, bytes]:
    """The bucket's objects."""
    keys = [item["Key"] for item in real("s3").list_objects_v2(Bucket=PAYLOADS).get("Contents", ())]
    return {key: real("s3").get_object(Bucket=PAYLOADS, Key=key)["Body"].read() for key in keys}


def pointer(**changes: Any) -> dict[str, Any]:
    """A pointer as somebody might make it up."""
    return {POINTER: {"key": f"{PREFIX}/{'a' * 32}", "offset": 0, "size": 5, **changes}}


def store(text: str, key: str = f"{PREFIX}/{'a' * 32}") -> None:
    real("s3").put_object(Bucket=PAYLOADS, Key=key, Body=text.encode())


# writing


def test_what_fits_touches_nothing(payloads: PayloadStore, calls: Calls) -> None:
    """Not even a client is made: S3's model takes longer to load than most functions run."""
    value = {"a": "x" * 5000, "b": ["😀", 1.5, None]}
    assert payloads.offload(value, 10_000, PREFIX) is value
    assert payloads.resolve(value, PREFIX) is value
    assert calls.clients == []


def test_all_offloaded_parts_are_one_object(payloads: PayloadStore, calls: Calls) -> None:
    value = {"a": "é" * 5000, "b": list(range(5000)), "c": 1}
    rest = payloads.offload(value, 1000, PREFIX)
    assert calls.operations == ["put_object"]
    ((key, content),) = stored().items()
    assert re.fullmatch(rf"{PREFIX}/[0-9a-f]{{32}}", key)
    assert content.decode() == json.dumps(value["a"], ensure_ascii=False) + json.dumps(
        value["b"], separators=(",", ":")
    )
    assert rest["c"] == 1
    assert payloads.resolve(rest, PREFIX) == value


def test_a_write_that_is_repeated_writes_another_object(payloads: PayloadStore) -> None:
    """Two attempts of a step do not overwrite each other's."""
    one, two = (payloads.offload("x" * 5000, 1000, PREFIX) for _ in range(2))
    assert one != two
    assert payloads.resolve([one, two], PREFIX) == ["x" * 5000] * 2


@given(
    value=st.recursive(
        st.none() | st.integers() | st.text() | st.just("x" * 3 * MIN_OFFLOADED_BYTES),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_a_value_is_resolved_as_it_was(moto: None, value: Any) -> None:
    s3_backends.reset()
    create_payloads()
    payloads = PayloadStore(lambda: real("s3"), PAYLOADS)
    assert payloads.resolve(payloads.offload(value, 500, PREFIX), PREFIX) == value


@pytest.mark.parametrize("text", ["{}", '"é😀"', json.dumps(list(range(10_000)))])
def test_a_text_is_an_object_of_its_own(payloads: PayloadStore, calls: Calls, text: str) -> None:
    payload = payloads.put(PREFIX, text)
    assert stored() == {payload.key: text.encode()}
    assert (payload.offset, payload.size) == (0, len(text.encode()))
    assert payloads.get(payload) == text
    assert payloads.resolve({"a": payload.as_json()}, PREFIX) == {"a": json.loads(text)}


# reading


def test_parts_that_follow_each_other_are_read_at_once(
    payloads: PayloadStore, calls: Calls
) -> None:
    value = [f"{n}" * 5000 for n in range(9)]
    rest = payloads.offload(value, 3000, PREFIX)
    assert all(map(pointer_of, rest))
    calls.forget()
    assert payloads.resolve(rest, PREFIX) == value
    (call,) = calls.made
    assert call.arguments["Range"] == f"bytes=0-{9 * 5002 - 1}"


def test_of_an_object_only_what_is_wanted_is_read(payloads: PayloadStore, calls: Calls) -> None:
    value = [f"{n}" * 5000 for n in range(9)]
    rest = payloads.offload(value, 3000, PREFIX)
    calls.forget()
    wanted = [rest[2], {"x": rest[7]}, rest[2]]
    assert payloads.resolve(wanted, PREFIX) == [value[2], {"x": value[7]}, value[2]]
    ranges = sorted(call.arguments["Range"] for call in calls.made)
    assert ranges == ["bytes=10004-15005", "bytes=35014-40015"]


def test_parts_may_overlap(payloads: PayloadStore, calls: Calls) -> None:
    """Whoever made such pointers up."""
    store("[[1],[2]]")
    parts = [pointer(size=9), pointer(offset=1, size=3), pointer(offset=5, size=3)]
    assert payloads.resolve(parts, PREFIX) == [[[1], [2]], [1], [2]]
    assert calls.operations == ["get_object"]


def test_the_client_is_made_before_there_are_threads(payloads: PayloadStore, calls: Calls) -> None:
    """Of which each would make one."""
    made: list[threading.Thread] = []

    def client() -> Any:
        made.append(threading.current_thread())
        return calls.client("s3")

    rest = [payloads.put(PREFIX, "[1]").as_json() for _ in range(9)]
    assert PayloadStore(client, PAYLOADS).resolve(rest, PREFIX) == [[1]] * 9
    assert made == [threading.current_thread()]


def test_parts_of_several_objects_come_back(payloads: PayloadStore, calls: Calls) -> None:
    """As a step gets them that comes after a Map."""
    values = [[f"{n}" * 2000, n] for n in range(40)]
    parts = [payloads.offload(value, 1000, PREFIX) for value in values]
    calls.forget()
    assert payloads.resolve({"parts": parts}, PREFIX) == {"parts": values}
    assert calls.operations == ["get_object"] * 40


def test_a_pointer_that_stands_twice_is_resolved_to_two_values(payloads: PayloadStore) -> None:
    """A tool may change what it is given."""
    rest = payloads.put(PREFIX, "[1]").as_json()
    one, two = payloads.resolve([rest, rest], PREFIX)
    one.append(2)
    assert two == [1]


def test_the_value_with_the_pointers_is_left_alone(payloads: PayloadStore) -> None:
    rest = {"a": payloads.put(PREFIX, "[1]").as_json()}
    before = json.dumps(rest)
    payloads.resolve(rest, PREFIX)
    assert json.dumps(rest) == before


def test_a_pointer_may_be_deep(payloads: PayloadStore) -> None:
    value: Any = payloads.put(PREFIX, "[1]").as_json()
    for _ in range(200):
        value = {"a": [value]}
    whole = payloads.resolve(value, PREFIX)
    for _ in range(200):
        whole = whole["a"][0]
    assert whole == [1]


def test_what_is_stored_holds_no_pointers(payloads: PayloadStore) -> None:
    """It may come from a client, and only look like one."""
    value = {"a": ["x" * 5000, pointer()]}
    rest = payloads.put(PREFIX, json.dumps(value)).as_json()
    assert payloads.resolve(rest, PREFIX) == value


@pytest.mark.parametrize(
    "error",
    [
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        ReadTimeoutError(endpoint_url="https://s3"),
        ResponseStreamingError(error="reset"),
    ],
    ids=["short", "slow", "reset"],
)
@pytest.mark.parametrize("times", [1, MAX_READ_ATTEMPTS - 1, MAX_READ_ATTEMPTS])
def test_a_body_that_breaks_off_is_read_again(
    payloads: PayloadStore, calls: Calls, error: Exception, times: int
) -> None:
    payload = payloads.put(PREFIX, "[1]")
    errors = [error] * times

    def broken() -> bytes:
        if errors:
            raise errors.pop()
        return b"[1]"

    calls.instead["get_object"] = lambda **_: {"Body": SimpleNamespace(read=broken)}
    if times < MAX_READ_ATTEMPTS:
        assert payloads.get(payload) == "[1]"
    else:
        with pytest.raises(type(error)):
            payloads.get(payload)


def test_a_read_is_begun_once_where_one_attempt_is_wanted(
    payloads: PayloadStore, calls: Calls
) -> None:
    payload = payloads.put(PREFIX, "[1]")

    def broken() -> bytes:
        raise ReadTimeoutError(endpoint_url="https://s3")

    calls.instead["get_object"] = lambda **_: {"Body": SimpleNamespace(read=broken)}
    calls.forget()
    with pytest.raises(ReadTimeoutError):
        PayloadStore(lambda: calls.client("s3"), PAYLOADS, read_attempts=1).get(payload)
    assert calls.operations == ["get_object"]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_payloads_over_the_limit_are_not_read(
    payloads: PayloadStore, calls: Calls, times: int
) -> None:
    """Whoever reads it has so much memory, and a value takes a multiple of its text. One that
    stands in two places is loaded twice.
    """
    rest = payloads.put(PREFIX, json.dumps(["x" * 5000] * times)).as_json()
    size = len(json.dumps(["x" * 5000] * times))
    calls.forget()
    with pytest.raises(PayloadTooLarge):
        payloads.resolve([rest] * times, PREFIX, max_bytes=size * times - 1)
    assert calls.made == []
    assert (
        payloads.resolve([rest] * times, PREFIX, max_bytes=size * times)
        == [["x" * 5000] * times] * times
    )


def test_there_is_a_default_limit(payloads: PayloadStore, calls: Calls) -> None:
    parts = [pointer(size=MAX_RESOLVED_BYTES - 4), pointer(size=5)]
    with pytest.raises(PayloadTooLarge):
        payloads.resolve(parts, PREFIX)
    assert calls.made == []
    with pytest.raises(PayloadNotFound):  # it is asked for, and is not there
        payloads.resolve([pointer(size=MAX_RESOLVED_BYTES - 4), pointer(size=4)], PREFIX)


# whose it is


@pytest.mark.parametrize(
    "key",
    [
        f"flow/c1-{'1' * 32}/{'a' * 32}",
        f"other/{TASK}/{'a' * 32}",
        f"flow/{TASK}0/{'a' * 32}",
        f"flow/{'a' * 32}",
        f"x/{PREFIX}/{'a' * 32}",
        f"/{PREFIX}/{'a' * 32}",
        f"{PREFIX.upper()}/{'a' * 32}",
        PREFIX,
        "",
    ],
)
def test_a_pointer_to_another_task_s_payload_is_not_resolved(
    payloads: PayloadStore, calls: Calls, key: str
) -> None:
    """A client may write one into its arguments: it stays the value that it is."""
    if key and not key.startswith("/"):
        store(json.dumps(SECRET), key)
    calls.forget()
    forged = {"a": [pointer(key=key, size=9)]}
    assert payloads.resolve(forged, PREFIX) == forged
    assert calls.made == []


def test_beside_a_forged_pointer_others_are_resolved(payloads: PayloadStore) -> None:
    forged = pointer(key=f"flow/c1-{'1' * 32}/{'a' * 32}")
    value = {"forged": forged, "mine": payloads.put(PREFIX, "[1]").as_json()}
    assert payloads.resolve(value, PREFIX) == {"forged": forged, "mine": [1]}


@pytest.mark.parametrize(
    "value",
    [
        {POINTER: "text"},
        {POINTER: {"key": f"{PREFIX}/{'a' * 32}", "offset": 0}},
        {POINTER: {"key": f"{PREFIX}/{'a' * 32}", "offset": "0", "size": 5}},
        {POINTER: {"key": f"{PREFIX}/{'a' * 32}", "offset": 0, "size": 5.0}},
        {**pointer(), "and": "more"},
        {"text": POINTER},
    ],
    ids=["text", "no size", "offset of text", "size of a fraction", "two members", "its name"],
)
def test_what_only_resembles_a_pointer_is_a_value(payloads: PayloadStore, value: Any) -> None:
    assert payloads.resolve([value], PREFIX) == [value]


def refused(payloads: PayloadStore, changes: dict[str, Any]) -> None:
    with pytest.raises(PayloadNotFound) as gone:
        payloads.resolve({"a": pointer(**changes)}, PREFIX)
    assert str(gone.value) == "A payload pointer points to nothing"
    assert SECRET not in "".join(traceback.format_exception(gone.value))


@pytest.mark.parametrize(
    "changes",
    [
        {"key": f"{PREFIX}/{'b' * 32}"},
        {"size": 12},
        {"size": 8},
        {"offset": 9, "size": 2},
        {"offset": 100},
        {"offset": MAX_OBJECT_BYTES - 1},
        {"size": MAX_RESOLVED_BYTES},
        {"offset": 10, "size": 1},
    ],
    ids=str,
)
def test_a_pointer_under_the_task_s_prefix_to_a_missing_object_fails(
    payloads: PayloadStore, changes: dict[str, Any]
) -> None:
    """For this task alone, and without a word of what is there."""
    store(f'"{SECRET}" \u00e9')
    refused(payloads, changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": f"{PREFIX}/../{'a' * 29}"},
        {"key": f"{PREFIX}/{'a' * 31}"},
        {"key": f"{PREFIX}/{'a' * 33}"},
        {"key": f"{PREFIX}/{'A' * 32}"},
        {"key": f"{PREFIX}/{'a' * 32}/"},
        {"key": f"{PREFIX}/"},
        {"offset": -1},
        {"offset": MAX_OBJECT_BYTES},
        {"size": 0},
        {"size": -4},
        {"size": MAX_OBJECT_BYTES},
    ],
    ids=str,
)
def test_a_pointer_to_what_cannot_be_there_costs_no_call(
    payloads: PayloadStore, calls: Calls, changes: dict[str, Any]
) -> None:
    refused(payloads, changes)
    assert calls.made == []


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("NoSuchKey", PayloadNotFound),
        ("InvalidRange", PayloadNotFound),
        ("AccessDenied", ClientError),
        ("KMS.DisabledException", ClientError),
        ("SlowDown", ClientError),
        ("NoSuchBucket", ClientError),
        ("InternalError", ClientError),
    ],
)
@pytest.mark.parametrize("way", ["whole", "text"])
def test_a_missing_payload_is_told_from_one_that_cannot_be_read_now(
    payloads: PayloadStore, calls: Calls, code: str, raised: type[Exception], way: str
) -> None:
    """Permissions can be mended: what is denied is not given up, though S3 denies a missing key,
    too, to whoever may not list the bucket (API reference, "GetObject", "Permissions")."""

    def refuse(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": SECRET}}, "GetObject")

    calls.instead["get_object"] = refuse
    payload = PayloadPointer(f"{PREFIX}/{'a' * 32}", 0, 5)
    read: Callable[[], Any] = {
        "whole": lambda: payloads.resolve(payload.as_json(), PREFIX),
        "text": lambda: payloads.get(payload),
    }[way]
    with pytest.raises(raised) as error:
        read()
    if raised is PayloadNotFound:
        assert SECRET not in "".join(traceback.format_exception(error.value))


def test_an_object_that_is_shorter_than_it_was_is_gone(payloads: PayloadStore) -> None:
    payload = payloads.put(PREFIX, "[1]")
    store("[1", payload.key)
    with pytest.raises(PayloadNotFound):
        payloads.get(payload)


def test_an_answer_that_is_longer_than_its_range_is_none(
    payloads: PayloadStore, calls: Calls
) -> None:
    """What does not know ranges answers with the whole object."""
    calls.instead["get_object"] = lambda **_: {"Body": BytesIO(b'"abc" and more')}
    with pytest.raises(PayloadNotFound):
        payloads.get(PayloadPointer(f"{PREFIX}/{'a' * 32}", 0, 5))


# links


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials as a function has them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "testing")


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east-1", "s3.amazonaws.com"),
        ("us-west-2", "s3.us-west-2.amazonaws.com"),
        ("eu-west-1", "s3.eu-west-1.amazonaws.com"),
        ("eu-central-1", "s3.eu-central-1.amazonaws.com"),
        ("eu-south-1", "s3.eu-south-1.amazonaws.com"),
        ("me-central-1", "s3.me-central-1.amazonaws.com"),
        ("us-gov-west-1", "s3.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "s3.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_a_presigned_url_leads_to_the_region_that_it_is_signed_for(
    monkeypatch: pytest.MonkeyPatch, region: str, host: str
) -> None:
    """By version 4: version 2 does not do for objects that a KMS key encrypts. At the host without
    a region, S3 answers for a new bucket with a redirect to one that the signature does not fit,
    and for regions that have to be enabled not at all (S3 user guide, "Download and upload objects
    with presigned URLs", "Virtual hosting of buckets").
    """
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    payloads = PayloadStore(lambda: aws_client("s3", S3_CONFIG), PAYLOADS)
    link = payloads.presigned_url(PayloadPointer(f"{PREFIX}/{'a' * 32}", 0, 5), 3600)
    url = urllib.parse.urlsplit(link)
    query = dict(urllib.parse.parse_qsl(url.query))
    assert (url.scheme, url.netloc) == ("https", f"{PAYLOADS}.{host}")
    assert url.path == f"/{PREFIX}/{'a' * 32}"
    assert query["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
    assert query["X-Amz-Expires"] == "3600"
    assert f"/{region}/s3/" in query["X-Amz-Credential"]
    assert query["response-content-disposition"] == 'attachment; filename="result.json"'


@pytest.mark.usefixtures("keys")
def test_an_emulator_s_bucket_is_part_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its names do not resolve."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    payloads = PayloadStore(lambda: aws_client("s3", S3_CONFIG), PAYLOADS)
    link = payloads.presigned_url(PayloadPointer(f"{PREFIX}/{'a' * 32}", 0, 5), 60)
    assert link.startswith(f"http://127.0.0.1:4566/{PAYLOADS}/{PREFIX}/")
