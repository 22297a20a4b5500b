"""What is too large for a row or for Step Functions, in S3: written once, read in ranges.

An object belongs to one task, and to one tool: its key is `<tool>/<task id>/<32 random hex>`. It is
never written a second time, so a PutObject that is repeated changes nothing; a bucket's lifecycle
rule removes it when no task can be that old.

Amazon S3 API reference, "PutObject", "GetObject"; user guide, "Download and upload objects with
presigned URLs".
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import (
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from . import offloading as fitting
from .pointer import POINTER, PayloadPointer, pointer_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

READERS: Final = 8
"""Reads at a time; botocore keeps ten connections."""
MAX_READ_ATTEMPTS: Final = 3
"""How often a read is begun. botocore repeats a call, but not a body that breaks off."""

_RANDOM: Final = re.compile(r"[0-9a-f]{32}")
_GONE: Final = frozenset({"InvalidRange", "NoSuchKey"})
"""Not AccessDenied, though S3 says so of a missing key to whoever may not list the bucket (API
reference, "GetObject"): permissions can be mended, and nothing is to be given up for them."""
_BROKEN_OFF: Final = (IncompleteReadError, ReadTimeoutError, ResponseStreamingError)


class PayloadGone(Exception):
    """What a pointer points to is not there, or never was."""

    def __init__(self) -> None:
        super().__init__("What a pointer points to is not there")


class PayloadTooLarge(Exception):
    """What pointers point to is too much to be loaded."""

    def __init__(self) -> None:
        super().__init__("What pointers point to is too large")


@dataclass(frozen=True, slots=True)
class _Range:
    """A part of an object that is read in one call."""

    key: str
    start: int
    end: int
    """The first byte that is not read."""
    payloads: tuple[PayloadPointer, ...]


class PayloadStore:
    """Large values of tasks. An `owner` is a task's folder (see `pointer.owner_of`).

    The client is made on first use: most requests need none. A read is begun up to `reads` times.
    """

    def __init__(
        self, client: Callable[[], S3Client], bucket: str, read_attempts: int = MAX_READ_ATTEMPTS
    ) -> None:
        self._make_client = client
        self._bucket = bucket
        self._read_attempts = read_attempts

    @cached_property
    def _client(self) -> S3Client:
        return self._make_client()

    def fit(self, value: Any, room: int, owner: str) -> Any:
        """A JSON value with at most `room` bytes, of which the rest is pointed to.

        All that is moved is one object, of which pointers name ranges. See `fitting.fit`, which
        decides; a value that fits is returned as it is, and nothing is written.

        Raises ValueError and TypeError for what is not JSON.
        """
        key = _new_key(owner)
        rest, content = fitting.fit(value, room, key)
        if content:
            self._write(key, content)
        return rest

    def whole(self, value: Any, owner: str, most: int = fitting.MOST_WHOLE) -> Any:
        """A JSON value with all that its pointers point to in their places.

        Only pointers into the owner's folder are followed: arguments and answers come from clients,
        and one that looks like a pointer to what is another task's stays as it is. What is in S3
        holds no pointers, whatever it looks like.

        Raises PayloadGone. And PayloadTooLarge, before anything is read, for pointers to more than
        `most` bytes, counting each time that one stands in the value: what is loaded is a multiple.
        """
        text = json.dumps(value)
        if POINTER not in text:
            return value
        wanted: list[PayloadPointer] = []

        def note(member: dict[str, Any]) -> dict[str, Any]:
            payload = _owned(member, owner)
            if payload is not None:
                wanted.append(payload)
            return member

        json.loads(text, object_hook=note)
        if not wanted:
            return value
        if sum(payload.size for payload in wanted) > most:
            raise PayloadTooLarge
        found = self._read_all(set(wanted))

        def put_back(member: dict[str, Any]) -> Any:
            payload = _owned(member, owner)
            return member if payload is None else _value(found[payload])

        return json.loads(text, object_hook=put_back)

    def put(self, owner: str, text: str) -> PayloadPointer:
        """Store a text as an object of its own."""
        content = text.encode()
        payload = PayloadPointer(_new_key(owner), 0, len(content))
        self._write(payload.key, content)
        return payload

    def text(self, payload: PayloadPointer) -> str:
        """The text of a payload. Raises PayloadGone."""
        return self._read(payload.key, payload.offset, payload.offset + payload.size).decode()

    def link(self, payload: PayloadPointer, seconds: int) -> str:
        """A URL from which anybody who knows it can download a payload that is a whole object.

        For so many seconds, and for no longer than the credentials that it is signed with last,
        which are a role's: hours.
        """
        return self._client.generate_presigned_url(
            ClientMethod="get_object",
            Params={
                "Bucket": self._bucket,
                "Key": payload.key,
                "ResponseContentDisposition": 'attachment; filename="result.json"',
            },
            ExpiresIn=seconds,
        )

    def _write(self, key: str, content: bytes) -> None:
        self._client.put_object(
            Bucket=self._bucket, Key=key, Body=content, ContentType="application/json"
        )

    def _read_all(self, payloads: Collection[PayloadPointer]) -> dict[PayloadPointer, bytes]:
        from concurrent.futures import ThreadPoolExecutor

        self._client  # noqa: B018  made before there are threads, of which each would make one
        with ThreadPoolExecutor(READERS) as readers:
            read = readers.map(self._read_range, _ranges(payloads))
            return {payload: content for part in read for payload, content in part}

    def _read_range(self, part: _Range) -> list[tuple[PayloadPointer, bytes]]:
        content = self._read(part.key, part.start, part.end)
        starts = [(payload, payload.offset - part.start) for payload in part.payloads]
        return [(payload, content[start : start + payload.size]) for payload, start in starts]

    def _read(self, key: str, start: int, end: int) -> bytes:
        for attempt in range(1, self._read_attempts + 1):
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket, Key=key, Range=f"bytes={start}-{end - 1}"
                )
                content = answer["Body"].read()
            except ClientError as error:
                if error.response["Error"]["Code"] in _GONE:
                    raise PayloadGone from None
                raise
            except _BROKEN_OFF:
                if attempt == self._read_attempts:
                    raise
            else:
                break
        if len(content) != end - start:
            raise PayloadGone
        return content


def _new_key(owner: str) -> str:
    return f"{owner}/{secrets.token_hex(16)}"


def _owned(value: object, owner: str) -> PayloadPointer | None:
    """What a value points to in the owner's folder. Raises PayloadGone for what cannot be there."""
    payload = pointer_of(value)
    if payload is None or not payload.key.startswith(f"{owner}/"):
        return None
    possible = 0 <= payload.offset < fitting.MOST and 0 < payload.size < fitting.MOST
    if not possible or not _RANDOM.fullmatch(payload.key.removeprefix(f"{owner}/")):
        raise PayloadGone
    return payload


def _ranges(payloads: Iterable[PayloadPointer]) -> Iterator[_Range]:
    """What to read: parts of an object that follow each other at once, all others by themselves."""
    together: list[PayloadPointer] = []
    key, start, end = "", 0, 0
    for payload in sorted(payloads, key=lambda payload: (payload.key, payload.offset)):
        if together and (payload.key != key or payload.offset > end):
            yield _Range(key, start, end, tuple(together))
            together = []
        if not together:
            key, start, end = payload.key, payload.offset, payload.offset
        together.append(payload)
        end = max(end, payload.offset + payload.size)
    if together:
        yield _Range(key, start, end, tuple(together))


def _value(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:  # a range that no value was written to
        raise PayloadGone from None
