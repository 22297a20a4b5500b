"""The S3 bucket of payloads: values that are too large for a row or for Step Functions.

An object belongs to one task of one tool: its key is `<tool>/<task id>/<32 random hex digits>`. It
is written once, so a PutObject that is repeated changes nothing. Several payloads may be ranges of
one object. A lifecycle rule of the bucket removes objects when no task can be that old.

Sources: Amazon S3 API reference, "PutObject", "GetObject"; S3 user guide, "Download and upload
objects with presigned URLs".
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import (
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from . import offloading
from .pointer import POINTER, PayloadPointer, pointer_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CopySourceTypeDef

MAX_PARALLEL_READS: Final = 8
"""botocore keeps ten connections."""
MAX_READ_ATTEMPTS: Final = 3
"""How often a read is begun. botocore repeats a call, but not a body that breaks off."""

_RANDOM: Final = re.compile(r"[0-9a-f]{32}")
_NOT_FOUND_CODES: Final = frozenset({"InvalidRange", "NoSuchKey"})
"""AccessDenied is none of them, though a role that may not list the bucket gets it for a missing
key (S3 API reference, "GetObject"): a permission can be mended, so no task is failed for it."""
_BROKEN_OFF: Final = (IncompleteReadError, ReadTimeoutError, ResponseStreamingError)


class PayloadNotFound(Exception):
    """A pointer points to nothing: the object was removed, or the pointer is forged."""

    def __init__(self) -> None:
        super().__init__("A payload pointer points to nothing")


class PayloadTooLarge(Exception):
    """A value's payloads are more bytes than may be loaded."""

    def __init__(self) -> None:
        super().__init__("The payloads are too large to be loaded")


class PayloadStore:
    """The payloads of tasks. A `prefix` is the one of a task's keys (see `payload_prefix`).

    The client is made on first use: most requests need none. A read is begun up to `read_attempts`
    times.
    """

    def __init__(
        self,
        client: Callable[[], S3Client],
        bucket: str,
        read_attempts: int = MAX_READ_ATTEMPTS,
    ) -> None:
        self._make_client = client
        self._bucket = bucket
        self._read_attempts = read_attempts

    @cached_property
    def _client(self) -> S3Client:
        return self._make_client()

    def offload(self, value: Any, max_bytes: int, prefix: str) -> Any:
        """Reduce a JSON value to `max_bytes`: its largest parts become payload pointers.

        All parts go into one object. A value that fits is returned as it is, and nothing is
        written. Which parts are offloaded is decided by `offloading.offload`.

        Raises ValueError and TypeError for what is not JSON.
        """
        key = _new_key(prefix)
        rest, content = offloading.offload(value, max_bytes, key)
        if content:
            self._write(key, content)
        return rest

    def resolve(
        self, value: Any, prefix: str, max_bytes: int = offloading.MAX_RESOLVED_BYTES
    ) -> Any:
        """Put the values back into a JSON value where their pointers stand.

        Only pointers to keys under `prefix` are resolved. Arguments and answers come from clients:
        a forged pointer to another task's payload stays as it is. A payload holds no pointers,
        whatever it looks like.

        Raises PayloadNotFound; and PayloadTooLarge, before anything is read, when the payloads have
        more than `max_bytes`. A pointer that stands in the value twice counts twice. The loaded
        value takes several times as much memory as its text.
        """
        text = json.dumps(value)
        if POINTER not in text:
            return value
        pointers: list[PayloadPointer] = []

        def collect(member: dict[str, Any]) -> dict[str, Any]:
            pointer = _own_pointer(member, prefix)
            if pointer is not None:
                pointers.append(pointer)
            return member

        json.loads(text, object_hook=collect)
        if not pointers:
            return value
        if sum(pointer.size for pointer in pointers) > max_bytes:
            raise PayloadTooLarge
        contents = self._read_all(set(pointers))

        def put_back(member: dict[str, Any]) -> Any:
            pointer = _own_pointer(member, prefix)
            return member if pointer is None else _parsed(contents[pointer])

        return json.loads(text, object_hook=put_back)

    def put(self, prefix: str, text: str) -> PayloadPointer:
        """Write a JSON text as an object of its own."""
        content = text.encode()
        pointer = PayloadPointer(_new_key(prefix), 0, len(content))
        self._write(pointer.key, content)
        return pointer

    def copy(self, pointer: PayloadPointer, prefix: str) -> PayloadPointer:
        """Copy the object that a pointer is of, for another task, without loading it. S3 copies up
        to 5 GB in one call (API reference, "CopyObject"). Raises PayloadNotFound."""
        copied = replace(pointer, key=_new_key(prefix))
        source: CopySourceTypeDef = {"Bucket": self._bucket, "Key": pointer.key}
        try:
            self._client.copy_object(Bucket=self._bucket, Key=copied.key, CopySource=source)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_FOUND_CODES:
                raise PayloadNotFound from None
            raise
        return copied

    def get(self, pointer: PayloadPointer) -> str:
        """Read the JSON text that a pointer points to. Raises PayloadNotFound."""
        return self._read(pointer.key, pointer.offset, pointer.offset + pointer.size).decode()

    def presigned_url(self, pointer: PayloadPointer, expires_in_seconds: int) -> str:
        """A URL that downloads a payload which is a whole object; whoever has it needs no token.

        It expires with the credentials that sign it, if these expire earlier. Those of a Lambda
        function's role last for hours.
        """
        return self._client.generate_presigned_url(
            ClientMethod="get_object",
            Params={
                "Bucket": self._bucket,
                "Key": pointer.key,
                "ResponseContentDisposition": 'attachment; filename="result.json"',
            },
            ExpiresIn=expires_in_seconds,
        )

    def _write(self, key: str, content: bytes) -> None:
        self._client.put_object(
            Bucket=self._bucket, Key=key, Body=content, ContentType="application/json"
        )

    def _read_all(self, pointers: Collection[PayloadPointer]) -> dict[PayloadPointer, bytes]:
        from concurrent.futures import ThreadPoolExecutor

        self._client  # noqa: B018  made before there are threads, of which each would make one
        with ThreadPoolExecutor(MAX_PARALLEL_READS) as readers:
            ranges = readers.map(self._read_range, _ranges(pointers))
            return {pointer: content for found in ranges for pointer, content in found}

    def _read_range(self, wanted: _Range) -> list[tuple[PayloadPointer, bytes]]:
        content = self._read(wanted.key, wanted.start, wanted.end)
        starts = [(pointer, pointer.offset - wanted.start) for pointer in wanted.pointers]
        return [(pointer, content[start : start + pointer.size]) for pointer, start in starts]

    def _read(self, key: str, start: int, end: int) -> bytes:
        for attempt in range(1, self._read_attempts + 1):
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket, Key=key, Range=f"bytes={start}-{end - 1}"
                )
                content = answer["Body"].read()
            except ClientError as error:
                if error.response["Error"]["Code"] in _NOT_FOUND_CODES:
                    raise PayloadNotFound from None
                raise
            except _BROKEN_OFF:
                if attempt == self._read_attempts:
                    raise
            else:
                break
        if len(content) != end - start:
            raise PayloadNotFound
        return content


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes of an object that one call reads, for the payloads in them."""

    key: str
    start: int
    end: int
    """The first byte that is not read."""
    pointers: tuple[PayloadPointer, ...]


def _ranges(pointers: Iterable[PayloadPointer]) -> Iterator[_Range]:
    """What to read: payloads that follow each other in an object in one call, all others alone."""
    together: list[PayloadPointer] = []
    key, start, end = "", 0, 0
    for pointer in sorted(pointers, key=lambda pointer: (pointer.key, pointer.offset)):
        if together and (pointer.key != key or pointer.offset > end):
            yield _Range(key, start, end, tuple(together))
            together = []
        if not together:
            key, start, end = pointer.key, pointer.offset, pointer.offset
        together.append(pointer)
        end = max(end, pointer.offset + pointer.size)
    if together:
        yield _Range(key, start, end, tuple(together))


def _new_key(prefix: str) -> str:
    return f"{prefix}/{secrets.token_hex(16)}"


def _own_pointer(value: object, prefix: str) -> PayloadPointer | None:
    """The pointer under `prefix` that a value is; None when it is none.

    Raises PayloadNotFound for a pointer that no PayloadStore has written.
    """
    pointer = pointer_of(value)
    if pointer is None or not pointer.key.startswith(f"{prefix}/"):
        return None
    limit = offloading.MAX_OBJECT_BYTES
    possible = 0 <= pointer.offset < limit and 0 < pointer.size < limit
    if not possible or not _RANDOM.fullmatch(pointer.key.removeprefix(f"{prefix}/")):
        raise PayloadNotFound
    return pointer


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:  # the range of a forged pointer, which holds no value
        raise PayloadNotFound from None
