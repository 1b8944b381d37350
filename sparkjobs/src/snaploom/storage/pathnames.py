"""Names in documents of a folder that become paths, validated where they are parsed.

Spark and the stores take names literally, so that `..` climbs out of the folder, `hdfs://...` is
another store, and a line feed forges a line of a log. Nothing but the names that Snaploom gives
passes here: what is not known to be harmless is refused, and never left to Spark.
"""

from __future__ import annotations

import re
from typing import Annotated

from annotated_types import Ge, Le, MaxLen
from pydantic import AfterValidator, StringConstraints

from snaploom.storage.layout import ENDING, PARTITION, RUN

LONGEST_NAME = 1024
"""Bytes of the longest key that S3 takes; other stores take longer ones."""
LARGEST = 2**63 - 1
"""Of numbers that Spark, Iceberg and file systems know: 64 bits with a sign."""
EARLIEST, LATEST = -62_135_596_800_000_000_000, 253_402_300_799_999_999_999
"""Nanoseconds of the years 1 to 9999, which ISO 8601 can write."""

_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_HARMLESS = frozenset({"3A"})
"""Characters that Snaploom's names have encoded, as Spark does: the colon of a time."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f\\]+")


def check_relative(path: str) -> str:
    """Return the path itself, if it is below any folder it is resolved against.

    Raises:
        ValueError: it is absolute or empty, climbs, names a scheme or drive, or has characters
            that are encoded, control something, or separate folders elsewhere.
    """
    if not _PLAIN.fullmatch(path):
        raise ValueError("a name with control characters or a backslash, or without any")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("a path that is absolute, climbs or has an empty part")
    if _SCHEME.match(path):
        raise ValueError("a path with a scheme or drive")
    if any(found[1].upper() not in _HARMLESS for found in _ENCODED.finditer(path)):
        raise ValueError("a name with encoded characters")
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        raise ValueError("a name that is no Unicode") from None
    if length > LONGEST_NAME:
        raise ValueError(f"a name of more than {LONGEST_NAME} bytes")
    return path


RelativePath = Annotated[str, AfterValidator(check_relative)]
"""Path of a file below a folder."""

PublishedPath = Annotated[
    str,
    StringConstraints(
        max_length=LONGEST_NAME,
        pattern=rf"^data/{PARTITION}/{RUN}-[0-9a-f]{{8}}-[0-9]{{5,9}}{ENDING}$",
    ),
]
"""Key of a published file: no other file may be read or removed as one."""

PartitionName = Annotated[str, StringConstraints(max_length=255, pattern=rf"^{PARTITION}$")]
"""Folder of a snapshot below `data/`, such as `day=1577836800000`."""

RunId = Annotated[str, StringConstraints(pattern=rf"^{RUN}$")]
"""Identity of a run."""

Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in hexadecimal, which names a document."""

Line = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]
"""Text of one line at most as long as a name."""

Count = Annotated[int, Ge(0), Le(LARGEST)]
"""A number of something."""
Sequence = Annotated[int, Ge(1), Le(10**18)]
"""Number of an entry; more can follow the last that is read (`checkpoints.LAST_ENTRY`)."""
Nanos = Annotated[int, Ge(EARLIEST), Le(LATEST)]
"""An instant as a number."""
Versions = MaxLen(1_000_000)
"""Bound of lists with a member a version: ten times what is promised."""
