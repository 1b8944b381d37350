"""Names inside an output folder (rules P9 to P13).

```
snaploom.json                                  marker: this folder is Snaploom's, and its format
data/<partition>/<run>-<attempt>-00000.<ext>   published files, each named once and for ever
data/.staging/<run>/<attempt>/                 what a run is writing; readers ignore dot folders
metadata/manifest/<20 digits>.json             entries of the manifest log: the truth
metadata/checkpoint/<20 digits>.json           states of the log, to save reading; never needed
metadata/_latest                               hint: a sequence that was reached
metadata/_claim                                hint: how often the newest claim was renewed
metadata/_swept                                hint: up to which ended version files are removed
metadata/removal.json                          notice: the folder is being removed, and for whom
metadata/schema/<sha256>.json, merged.json     schemas by content, and one that reads the newest
metadata/datamodel/<sha256>.json, merged.json  data models by content, and the merged one for people
commits/<sha256>.json                          what commits of a table mean (ICEBERG, DELTA)
data/_delta_log/                               versions of a table of Delta (`output.deltatable`)
iceberg/metadata/                              versions of that table (`output.icebergtable`)
metadata/listing/<sha256>.json                 what is known of a source's files: a cache
metadata/runs.json                             the last runs, with what failed: a note for pages
.snaploom-tmp/                                 writes that are not finished
```

The attempt is a fresh token for every publication: a run that gives up a snapshot and weaves it
again uses new names, so that a deletion that arrives late can only hit what is dead.
"""

import hashlib
import re
import secrets
from typing import Annotated
from urllib.parse import unquote

from annotated_types import Ge, Le, MaxLen
from pydantic import AfterValidator, StringConstraints

from snaploom.models.common import LARGEST, EpochNanos, format_instant

MARKER = "snaploom.json"
DATA = "data/"
STAGING = "data/.staging/"
DELTA_LOG = "data/_delta_log/"
MANIFEST = "metadata/manifest/"
CHECKPOINTS = "metadata/checkpoint/"
LATEST = "metadata/_latest"
CLAIM = "metadata/_claim"
SWEPT = "metadata/_swept"
REMOVAL = "metadata/removal.json"
SCHEMAS = "metadata/schema/"
DATA_MODELS = "metadata/datamodel/"
COMMITS = "commits/"
LISTINGS = "metadata/listing/"
RUNS = "metadata/runs.json"
MERGED_SCHEMA = "metadata/schema/merged.json"
MERGED_DATA_MODEL = "metadata/datamodel/merged.json"

SEQUENCE_DIGITS = 20
"""Room for any unsigned 64-bit number, so that names sort as numbers do."""

RUN = r"[0-9]{8}T[0-9]{9}Z-[0-9a-f]{12}"
"""Pattern of a run's identity."""
PARTITION = r"[A-Za-z0-9][A-Za-z0-9_]*=[A-Za-z0-9.+-]+(?:%3A[A-Za-z0-9.+-]+)*"
"""Pattern of a snapshot's folder: a column, and a time, in which Spark encodes the colon."""
ENDING = r"(?:\.[A-Za-z0-9._-]{1,100})?"
"""Pattern of the ending of a published file, such as `.snappy.parquet`."""
_RUN_ID = re.compile(RUN)
_PUBLISHED = re.compile(rf"data/[^/]+/({RUN})-[0-9a-f]{{8}}-\d{{5,}}(\.[^/]*)?")
_STAGED = re.compile(rf"data/\.staging/({RUN})/.+", re.DOTALL)
_SEQUENCE = re.compile(r"[^/]*/[^/]*/(\d{20})\.json")


def new_run_id(now: EpochNanos) -> str:
    """A run's identity: sorts by start, unique by 48 random bits, plain in any file name.

    For example `20200131T093000123Z-5be2a84c07d1`.
    """
    seconds, _, fraction = format_instant(now).removesuffix("Z").partition(".")
    moment = re.sub(r"[-:]", "", seconds) + fraction[:3].ljust(3, "0")
    return f"{moment}Z-{secrets.token_hex(6)}"


def is_run_id(text: str) -> bool:
    """Whether a text has the form that `new_run_id` gives."""
    return _RUN_ID.fullmatch(text) is not None


def new_attempt() -> str:
    """A token that distinguishes this publication from any other of the same run."""
    return secrets.token_hex(4)


def manifest_key(sequence: int) -> str:
    """Key of one entry of the log."""
    return f"{MANIFEST}{sequence:0{SEQUENCE_DIGITS}d}.json"


def checkpoint_key(sequence: int) -> str:
    """Key of the state after one entry."""
    return f"{CHECKPOINTS}{sequence:0{SEQUENCE_DIGITS}d}.json"


def sequence_of(key: str) -> int | None:
    """Sequence number in the key of an entry or checkpoint; None for any other key."""
    match = _SEQUENCE.fullmatch(key)
    return int(match[1]) if match else None


def content_hash(content: bytes) -> str:
    """SHA-256 in hexadecimal, the name of a document that is addressed by its content."""
    return hashlib.sha256(content).hexdigest()


def schema_key(schema_hash: str) -> str:
    """Key of a schema document."""
    return f"{SCHEMAS}{schema_hash}.json"


def data_model_key(model_hash: str) -> str:
    """Key of a data model document."""
    return f"{DATA_MODELS}{model_hash}.json"


def listing_key(source: str) -> str:
    """Key of the cached facts about a source's files; hashed, since its name may be too long."""
    return f"{LISTINGS}{content_hash(source.encode())}.json"


def commit_key(commit: str) -> str:
    """Key of the meaning of a table commit."""
    return f"{COMMITS}{commit}.json"


def staging_prefix(run_id: str, attempt: str) -> str:
    """Folder that one publication writes to."""
    return f"{STAGING}{run_id}/{attempt}/"


def partition_prefix(partition: str) -> str:
    """Folder of a snapshot such as `snapshot_epoch=1577836800000`; `ValueError` if not plain."""
    if not partition or "/" in partition or partition[0] in "._":
        raise ValueError(f"not the name of a partition: {partition!r}")
    return f"{DATA}{partition}/"


def partition_value(partition: str) -> str:
    """Value of the partition column in the name of a partition."""
    return unquote(partition.partition("=")[2])


def partition_of(key: str) -> str:
    """Name of the partition that a published file is in; empty for any other key."""
    folder, _, rest = key.removeprefix(DATA).partition("/")
    return folder if key.startswith(DATA) and rest and folder[0] not in "._" else ""


def published_key(partition: str, run_id: str, attempt: str, number: int, staged: str) -> str:
    """Final key of a staged file; endings such as `.snappy.parquet` give readers its codec."""
    name = staged.rsplit("/", 1)[-1]
    ending = name[name.index(".") :] if "." in name else ""
    return f"{partition_prefix(partition)}{run_id}-{attempt}-{number:05d}{ending}"


def run_of(key: str) -> str | None:
    """The run that wrote an object under `data/`, when its key proves one; else None."""
    match = _STAGED.fullmatch(key) or _PUBLISHED.fullmatch(key)
    return match[1] if match else None


def is_data_file(name: str) -> bool:
    """Whether a staged file is data.

    Spark's markers and checksums begin with `_` or `.`, marks of folders in buckets end with
    `_$folder$`.
    """
    return not name.startswith(("_", ".")) and not name.endswith("_$folder$")


# Names in documents of a folder that become paths, validated where they are parsed.

LONGEST_NAME = 1024
"""Bytes of the longest key that S3 takes; other stores take longer ones."""

FIRST_NANOS, LAST_NANOS = -62_135_596_800_000_000_000, 253_402_300_799_999_999_999
"""Nanoseconds of the years 1 to 9999, which ISO 8601 can write."""

_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_HARMLESS = frozenset({"3A"})
"""Characters that Snaploom's names have encoded, as Spark does: the colon of a time."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f\\]+")


def check_relative(path: str) -> str:
    """Return the path itself, if it is below any folder it is resolved against."""
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
Nanos = Annotated[int, Ge(FIRST_NANOS), Le(LAST_NANOS)]
"""An instant as a number."""
Versions = MaxLen(1_000_000)
"""Bound of lists with a member a version: ten times what is promised."""
