"""The cached entry of a resource, and the parts that other resources depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from snaploom.models.common import ResourceStatus
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.run import CurrentRun
from snaploom.models.skippingindex import SkippingIndex
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.objectmetadata import metadata_of, text_in
from snaploom_operator.objects import JsonObject, Ref, is_pause
from snaploom_operator.observed import Unparsable
from snaploom_operator.store.folderindex import folders_of
from snaploom_operator.store.references import references_of
from snaploom_operator.store.resourceparser import parse_resource, unreadable

RUNNABLE = frozenset({OutputDataset.__name__, SkippingIndex.__name__})
"""Kinds that run jobs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One cached resource."""

    ref: Ref
    version: int
    uid: str
    content: Resource | Unparsable
    references: frozenset[Ref]
    """Every object that its spec refers to, whether it exists or not."""
    folders: frozenset[str]
    """The folders that it publishes to or reads."""
    size: int
    """Approximate characters and values of its spec, which its check's cost grows with."""

    @property
    def generation(self) -> int:
        """Number of its spec's version."""
        if isinstance(self.content, Unparsable):
            return self.content.generation
        return self.content.metadata.generation or 0

    @property
    def trouble(self) -> str:
        """The cause if it cannot be read; empty if it can."""
        if not isinstance(self.content, Unparsable):
            return ""
        first = next(iter(self.content.findings), None)
        return f"cannot be read: {first.path}: {first.message}" if first else "cannot be read"


def read_entry(ref: Ref, version: int, stored: JsonObject, before: Entry | None) -> Entry:
    """Parse a resource; what follows from its spec is kept where that is the same.

    All that can fail for the content of an object is done here, before the store changes.
    """
    known = before.content if before is not None and isinstance(before.content, Resource) else None
    content = parse_resource(stored, known)
    has_same_spec = known is not None and _spec(content) is _spec(known)
    if before is not None and isinstance(content, Resource) and has_same_spec:
        return replace(before, version=version, content=content)
    references: frozenset[Ref] = frozenset()
    folders: frozenset[str] = frozenset()
    if isinstance(content, Resource):
        try:
            references, folders = references_of(content), folders_of(content)
        except Exception as error:  # noqa: BLE001 - no object may end what reads all of them
            content = unreadable(stored, error)
    uid = text_in(metadata_of(stored), "uid")
    return Entry(ref, version, uid, content, references, folders, size_of(stored.get("spec")))


def size_of(spec: JsonValue) -> int:
    """Characters of all keys and texts of a spec, plus one for each value."""
    size, waiting = 0, [spec]
    while waiting:
        value = waiting.pop()
        size += 1
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Mapping):
            size += sum(map(len, value))
            waiting.extend(value.values())
        elif isinstance(value, Sequence):
            waiting.extend(value)
    return size


def declared(entry: Entry | None) -> object:
    """The part that other resources depend on, for comparison."""
    if entry is None:
        return None
    if isinstance(entry.content, Unparsable):
        return entry.uid, entry.content.generation
    return entry.uid, _spec(entry.content)


def _spec(content: Resource | Unparsable) -> object:
    return getattr(content, "spec", None)


def published(entry: Entry | None) -> tuple[str, int] | None:
    """UID and manifest sequence of an output, which start runs of its readers and indexes."""
    content = None if entry is None else entry.content
    if entry is None or not isinstance(content, OutputDataset) or content.status is None:
        return None
    manifest = content.status.manifest
    return None if manifest is None else (entry.uid, manifest.sequence)


def current_run(content: Resource | Unparsable | None) -> CurrentRun | None:
    """The queued or submitted run of a resource."""
    if isinstance(content, OutputDataset | SkippingIndex) and content.status is not None:
        return content.status.current_run
    return None


def is_stalled_by_reference(entry: Entry | None) -> bool:
    """Return whether a resource is stalled because a reference leads to nothing."""
    status: object = getattr(entry.content, "status", None) if entry is not None else None
    return isinstance(status, ResourceStatus) and any(
        each.type == ConditionType.STALLED and each.reason == Reason.REFERENCE_MISSING
        for each in status.conditions
    )


def may_start(content: Resource | Unparsable | None) -> bool:
    """Return whether a resource is neither paused nor suspended."""
    if not isinstance(content, OutputDataset | SkippingIndex):
        return False
    paused = is_pause(content.metadata.annotations)
    return not paused and not content.spec.run.suspend
