"""What is kept of one resource, and what others depend on in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.run import CurrentRun
from snaploom.models.skippingindex import SkippingIndex
from snaploom_operator.knowledge.parsing import Refused
from snaploom_operator.objects import ANNOTATION_PAUSED, Ref

RUNNABLE = frozenset({OutputDataset.__name__, SkippingIndex.__name__})
"""Kinds that run jobs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One resource of ours as it was last seen."""

    ref: Ref
    version: int
    uid: str
    content: Resource | Refused
    references: frozenset[Ref]
    """Every object that its spec names, whether there is one or not."""
    size: int
    """Characters and values of its spec, about: what judging it costs grows with them."""

    @property
    def generation(self) -> int:
        """Counts the changes of its spec."""
        if isinstance(self.content, Refused):
            return self.content.generation
        return self.content.metadata.generation or 0


def size_of(spec: JsonValue) -> int:
    """Characters of all names and texts of a spec, with one for each value."""
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
    """What others depend on; equal while nothing of it changed."""
    if entry is None:
        return None
    if isinstance(entry.content, Refused):
        return entry.uid, entry.content.generation
    return entry.uid, _spec(entry.content)


def _spec(resource: Resource) -> object:
    return getattr(resource, "spec", None)


def published(entry: Entry | None) -> tuple[str, int] | None:
    """How far an output published: who reads it, or indexes it, follows."""
    content = None if entry is None else entry.content
    if entry is None or not isinstance(content, OutputDataset) or content.status is None:
        return None
    manifest = content.status.manifest
    return None if manifest is None else (entry.uid, manifest.sequence)


def current_run(content: Resource | Refused | None) -> CurrentRun | None:
    """The run of a resource that waits or is in flight."""
    if isinstance(content, OutputDataset | SkippingIndex) and content.status is not None:
        return content.status.current_run
    return None


def may_go(content: Resource | Refused | None) -> bool:
    """Whether nobody keeps a resource's run from being started."""
    if not isinstance(content, OutputDataset | SkippingIndex):
        return False
    paused = content.metadata.annotations.get(ANNOTATION_PAUSED) == "true"
    return not paused and not content.spec.run.suspend
