"""Status conditions: types, reasons, and texts within limits of sizes."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from snaploom.models.base import ApiModel

MOST_BYTES = 32 * 1024
"""Most bytes of a whole status, as JSON."""


_MORE = "…"

_Item = TypeVar("_Item")
_Model = TypeVar("_Model", bound=ApiModel)


def fit_text(text: str, most: int) -> str:
    """A text, truncated to some bytes of JSON; truncated texts end in an ellipsis."""
    if len(text) * 6 <= most or _bytes(text) <= most:  # "\\u0000" is the longest form
        return text
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        if _bytes(text[:middle] + _MORE) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low] + _MORE


def fit_items(items: Iterable[_Model], most: int) -> tuple[_Model, ...]:
    """The first models that fit into some bytes of JSON."""
    return _fitting(items, most, lambda item: len(item.dump_json().encode()))


def fit_texts(texts: Iterable[str], most: int, most_each: int) -> tuple[str, ...]:
    """The first texts, each truncated, that fit into some bytes of JSON."""
    return _fitting((fit_text(text, most_each) for text in texts), most, _bytes)


def _fitting(items: Iterable[_Item], most: int, size: Callable[[_Item], int]) -> tuple[_Item, ...]:
    kept: list[_Item] = []
    for item in items:
        most -= size(item) + 1
        if most < 0:
            break
        kept.append(item)
    return tuple(kept)


def _bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def joined(*parts: str) -> str:
    """The parts that are not empty, separated by colons."""
    return ": ".join(part for part in parts if part)


LONGEST_MESSAGE = 1_200
"""Bytes of a condition's message, as JSON: six of them leave a status below 32 KB."""


class ConditionType(StrEnum):
    """Aspects of a resource's state, in the order in which a status lists them."""

    READY = "Ready"
    """The resource is usable: declarations are valid; an output has a fresh snapshot of the current
    declarations; an index is active."""
    RECONCILING = "Reconciling"
    """The resource is not Ready; work is in progress or will be retried automatically."""
    STALLED = "Stalled"
    """The resource does not become Ready until something is changed."""
    VALIDATED = "Validated"
    """The declarations are valid, together with everything they refer to."""
    PLANNED = "Planned"
    """There is exactly one join tree."""
    SNAPSHOT_FRESH = "SnapshotFresh"
    """The newest snapshot is younger than `run.freshness.maxAge`."""
    INDEX_FRESH = "IndexFresh"
    """The index covers its target as it was last seen."""
    SUSPENDED = "Suspended"
    """No further run is started."""


class Reason(StrEnum):
    """Reasons of conditions and events: stable words, each with an entry in `problems.toml`."""

    # Ready
    VALID = "Valid"
    PUBLISHED = "Published"
    NOTHING_DUE = "NothingDue"
    INDEX_ACTIVE = "IndexActive"
    DISABLED = "Disabled"
    LAST_RUN_FAILED = "LastRunFailed"
    # Ready is False, and Stalled
    INVALID = "Invalid"
    REFERENCE_MISSING = "ReferenceMissing"
    REFERENCE_NOT_READY = "ReferenceNotReady"
    CRD_OUTDATED = "CustomResourceDefinitionOutdated"
    TREE_AMBIGUOUS = "TreeAmbiguous"
    SOURCE_UNREACHABLE = "SourceUnreachable"
    SUBMITTER_NOT_AVAILABLE = "SubmitterNotAvailable"
    QUEUE_NOT_AVAILABLE = "QueueNotAvailable"
    RUN_REFUSED = "RunRefused"
    RETRIES_EXHAUSTED = "RetriesExhausted"
    STALE = "Stale"
    BUNDLE_TOO_LARGE = "BundleTooLarge"
    NAME_TAKEN = "NameTaken"
    INTERNAL_ERROR = "InternalError"
    # Ready is False, and Reconciling
    WAITING = "Waiting"
    RUN_QUEUED = "RunQueued"
    RUN_SUBMITTED = "RunSubmitted"
    QUOTA_PENDING = "QuotaPending"
    RUN_RUNNING = "RunRunning"
    RUN_WILL_BE_RETRIED = "RunWillBeRetried"
    DELETING = "Deleting"
    # Ready is False while the resource is suspended; also reasons of the condition Suspended
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    # Other conditions
    PLANNED = "Planned"
    FRESH = "Fresh"
    NEVER_PUBLISHED = "NeverPublished"
    NEVER_BUILT = "NeverBuilt"
    # Events
    RUN_STARTED = "RunStarted"
    RUN_SUCCEEDED = "RunSucceeded"
    RUN_FAILED = "RunFailed"
    RUN_LOST = "RunLost"
    RUN_RECREATED = "RunRecreated"
    RUN_STOPPED = "RunStopped"
    QUOTA_LOST = "QuotaLost"
    START_TIMEOUT = "StartTimeout"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    DATA_DELETED = "DataDeleted"
    DATA_LEFT = "DataLeft"


@dataclass(frozen=True)
class ConditionValue:
    """One condition without its times."""

    type: ConditionType
    is_true: bool
    reason: Reason
    message: str = ""
