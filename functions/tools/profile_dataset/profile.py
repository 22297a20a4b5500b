"""Column profiles that can be made of parts and merged, in any order. Pure.

Numbers: count, range, mean and standard deviation merge exactly (Chan, Golub and LeVeque 1979).
Distinct values: the k smallest hashes of a column's values (Bar-Yossef et al. 2002, "KMV"); exact
below k values, within about 1/sqrt(k) beyond. Frequent values: counted exactly as long as a column
has at most MAX_COUNTED of them, else left out.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

HASH_BYTES = 5
"""Seven characters in Base64; two values of a file of this size do not share a hash."""
MAX_COUNTED = 64
TOP = 5


class Moments(BaseModel):
    """Of the numbers in a column."""

    count: int
    minimum: float
    maximum: float
    mean: float
    m2: float
    """Sum of squared differences from the mean."""


class ColumnPart(BaseModel):
    """A column as one chunk sees it. `hashes` are packed, because states pass little data."""

    name: str
    values: int
    missing: int
    numbers: Moments | None
    k: int
    hashes: str
    counts: dict[str, int] | None


class ValueCount(BaseModel):
    """A value and how often it occurs."""

    value: str
    count: int


class ColumnProfile(BaseModel):
    """A column of the whole file."""

    name: str
    type: str
    missing: int
    distinct: int
    distinct_is_exact: bool
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    most_frequent: list[ValueCount] | None = None


class DatasetProfile(BaseModel):
    """The tool's result."""

    title: str
    rows: int
    columns: list[ColumnProfile]


def profile_column(name: str, cells: Sequence[str], k: int) -> ColumnPart:
    """Profile one column of one chunk, keeping `k` hashes; blank cells are missing."""
    values = [cell.strip() for cell in cells if cell.strip()]
    numbers = [number for number in map(_number, values) if number is not None]
    counts = Counter(values)
    return ColumnPart(
        name=name,
        values=len(values),
        missing=len(cells) - len(values),
        numbers=_moments(numbers) if numbers else None,
        k=k,
        hashes=_packed(sorted({_hash(value) for value in counts})[:k]),
        counts=dict(counts) if len(counts) <= MAX_COUNTED else None,
    )


def merge_columns(a: ColumnPart, b: ColumnPart) -> ColumnPart:
    """Two parts of the same column as one."""
    counts = None
    if a.counts is not None and b.counts is not None:
        total = Counter(a.counts)
        total.update(b.counts)
        counts = dict(total) if len(total) <= MAX_COUNTED else None
    return ColumnPart(
        name=a.name,
        values=a.values + b.values,
        missing=a.missing + b.missing,
        numbers=_merge_moments(a.numbers, b.numbers),
        k=a.k,
        hashes=_packed(sorted({*_unpacked(a.hashes), *_unpacked(b.hashes)})[: a.k]),
        counts=counts,
    )


def finished(part: ColumnPart) -> ColumnProfile:
    """What a merged column says of the file."""
    hashes = _unpacked(part.hashes)
    exact = len(hashes) < part.k
    # The k-th smallest of n evenly spread hashes lies at about k/n of their range.
    distinct = len(hashes) if exact else round((part.k - 1) * 256**HASH_BYTES / hashes[-1])
    profile = ColumnProfile(
        name=part.name,
        type=_type(part),
        missing=part.missing,
        distinct=distinct,
        distinct_is_exact=exact,
    )
    if part.numbers is not None and profile.type == "number":
        profile.minimum = part.numbers.minimum
        profile.maximum = part.numbers.maximum
        profile.mean = round(part.numbers.mean, 6)
        profile.standard_deviation = round(math.sqrt(part.numbers.m2 / part.numbers.count), 6)
    if part.counts and profile.type == "text":
        ordered = sorted(part.counts.items(), key=lambda item: (-item[1], item[0]))
        profile.most_frequent = [ValueCount(value=v, count=c) for v, c in ordered[:TOP]]
    return profile


def _type(part: ColumnPart) -> str:
    if part.values == 0:
        return "empty"
    if part.numbers is not None and part.numbers.count == part.values:
        return "number"
    return "text"


def _moments(numbers: Iterable[float]) -> Moments:
    numbers = list(numbers)
    mean = math.fsum(numbers) / len(numbers)
    return Moments(
        count=len(numbers),
        minimum=min(numbers),
        maximum=max(numbers),
        mean=mean,
        m2=math.fsum((number - mean) ** 2 for number in numbers),
    )


def _merge_moments(a: Moments | None, b: Moments | None) -> Moments | None:
    if a is None or b is None:
        return a or b
    count = a.count + b.count
    delta = b.mean - a.mean
    return Moments(
        count=count,
        minimum=min(a.minimum, b.minimum),
        maximum=max(a.maximum, b.maximum),
        mean=a.mean + delta * b.count / count,
        m2=a.m2 + b.m2 + delta**2 * a.count * b.count / count,
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _hash(value: str) -> int:
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=HASH_BYTES).digest(), "big")


def _packed(hashes: Sequence[int]) -> str:
    data = b"".join(number.to_bytes(HASH_BYTES, "big") for number in hashes)
    return base64.b64encode(data).decode()


def _unpacked(text: str) -> list[int]:
    data = base64.b64decode(text)
    starts = range(0, len(data), HASH_BYTES)
    return [int.from_bytes(data[start : start + HASH_BYTES], "big") for start in starts]
