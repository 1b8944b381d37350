"""Parses objects of our kinds into models, or into the findings why that failed.

A status that our models refuse, for example of a newer Snaploom, is read as missing, and is then
rewritten. Whatever else an object has, it is kept with a finding about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pydantic import JsonValue, ValidationError

from snaploom.loading.documents import read_object
from snaploom.models.codes import make_finding
from snaploom.models.common import ResourceStatus
from snaploom.models.finding import Finding
from snaploom.models.kinds import KIND_BY_NAME, KINDS
from snaploom.models.resource import ObjectMeta, Resource
from snaploom.models.times import EpochNanos
from snaploom_operator.objectmetadata import Metadata, metadata_of, text_in
from snaploom_operator.objects import FINALIZER, JsonObject
from snaploom_operator.observed import Unparsable
from snaploom_operator.store.references import ref_of

_STATUSES: Mapping[str, type[ResourceStatus]] = {
    kind.name: get_args(kind.model.model_fields["status"].annotation)[0] for kind in KINDS
}
"""The statuses of our kinds."""


def parse_resource(stored: JsonObject, known: Resource | None = None) -> Resource | Unparsable:
    """Parse one object of our kinds, by another version of it; never raises for its content."""
    try:
        return _parsed(stored) if known is None else _parsed_version(stored, known)
    except Exception as error:  # noqa: BLE001 - no object may end what reads all of them
        return unreadable(stored, error)


def unreadable(stored: JsonObject, error: Exception) -> Unparsable:
    """An object on which Snaploom's own code failed, such as one that is nested too deeply."""
    ref = ref_of(stored)
    finding = make_finding(
        "SL106",
        "this object cannot be read",
        resource=ref.identity,
        path="spec",
        found=type(error).__name__,
        expected="an object as Snaploom's CustomResourceDefinitions describe it",
        hint="correct it and apply it again, or delete it",
    )
    return _refused(stored, (finding,))


def _parsed(stored: JsonObject) -> Resource | Unparsable:
    document = _without_managed_fields(stored)
    model = KIND_BY_NAME[text_in(stored, "kind")].model
    declared = {key: document[key] for key in document if key != "status"}
    for attempt in (document, declared):
        try:
            return model.parse(attempt)
        except ValidationError:
            continue
    return _refused(stored, read_object(declared).findings)


def _parsed_version(stored: JsonObject, known: Resource) -> Resource | Unparsable:
    """Parse another version of a resource.

    The API server counts the changes of a spec. Where the count is the same, as after a write of
    the status, the spec is shared: it is parsed once, and in memory once.
    """
    metadata = metadata_of(_without_managed_fields(stored))
    held = known.metadata
    if held.uid is None or held.generation is None:
        return _parsed(stored)
    if (metadata.get("uid"), metadata.get("generation")) != (held.uid, held.generation):
        return _parsed(stored)
    try:
        status = _STATUSES[known.kind].parse(stored["status"]) if "status" in stored else None
        return known.changed(metadata=ObjectMeta.parse(dict(metadata)), status=status)
    except ValidationError:
        return _parsed(stored)


def _without_managed_fields(stored: JsonObject) -> dict[str, JsonValue]:
    """The object without `managedFields`, which are half of its size and never read."""
    metadata = metadata_of(stored)
    if "managedFields" not in metadata:
        return dict(stored)
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**stored, "metadata": kept}


def _refused(stored: JsonObject, findings: tuple[Finding, ...]) -> Unparsable:
    metadata = Metadata.of(stored)
    return Unparsable(
        now=EpochNanos(0),
        ref=ref_of(stored),
        uid=metadata.uid,
        generation=metadata.generation,
        findings=findings,
        status=_status(stored.get("status")),
        is_deleting=metadata.is_deleting,
        has_finalizer=FINALIZER in metadata.finalizers,
    )


def _status(raw: JsonValue) -> ResourceStatus | None:
    if not isinstance(raw, Mapping):
        return None
    common: dict[str, JsonValue] = {
        key: raw[key] for key in ("observedGeneration", "conditions") if key in raw
    }
    try:
        return ResourceStatus.parse(common)
    except (ValueError, RecursionError):
        return None
