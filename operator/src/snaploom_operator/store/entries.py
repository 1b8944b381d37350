"""Cached objects: our resources with their references and folders, and the objects of runs."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic import JsonValue, ValidationError

from snaploom.loading.documents import read_object
from snaploom.models.common import EpochNanos, ObjectMeta, Resource, ResourceStatus
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource, LastSeen
from snaploom.models.findings import Finding, make_finding
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom.sources.registry import declared
from snaploom.validate.outputs import comparable_folder, places_of
from snaploom_operator.conditions import joined
from snaploom_operator.decision import OwnedConfigMap, Unparsable
from snaploom_operator.objects import (
    FINALIZER,
    GATED,
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    Application,
    ApplicationState,
    DriverPod,
    FoundReport,
    JsonObject,
    Metadata,
    QuotaRequest,
    Ref,
    kind_key,
    known_instant,
    labels_of,
    mapping_in,
    metadata_of,
    objects_in,
    ref_of,
    text_in,
)
from snaploom_operator.submit.applications import ApplicationForm, read_application
from snaploom_operator.submit.local import ROLE as APPLICATION_ROLE
from snaploom_operator.submit.manifests import REPORT_ROLE, found_report

_shared_ref = lru_cache(4_096)(Ref)
"""Keys are shared: thousands of outputs of a namespace refer to the same sources."""


def references_of(resource: Resource) -> frozenset[Ref]:
    """Every object that a spec refers to."""
    namespace = resource.metadata.namespace or ""
    return frozenset(_shared_ref(kind, namespace, name) for kind, name in _named(resource))


def _named(resource: Resource) -> Iterator[tuple[str, str]]:
    match resource:
        case DataSource():
            variant = resource.spec.variant
            yield from (("DataSource", name) for name in resource.spec.reads)
            yield from (("MetadataApplicator", name) for name in variant.metadata_applicators)
            yield from (("FieldTransformer", name) for name in variant.field_transformers)
        case DataRelationship():
            yield from (("DataSource", name) for name in resource.spec.data_sources)
        case OutputDataset():
            model = resource.spec.data_model
            yield "DataSource", model.root_data_source.data_source
            yield from (("DataSource", other.data_source) for other in model.other_data_sources)
            yield from (("DataRelationship", used.name) for used in model.data_relationships)
        case SkippingIndex():
            target = resource.spec.target
            if target.data_source is not None:
                yield "DataSource", target.data_source
            if target.output_dataset is not None:
                yield "OutputDataset", target.output_dataset


def parse_resource(stored: JsonObject) -> Resource | Unparsable:
    """Parse one object of our kinds; never raises for its content."""
    return _content(ref_of(stored), stored, None)


def _content(ref: Ref, stored: JsonObject, known: Resource | None) -> Resource | Unparsable:
    """Parse an object, by another version of it if one is known."""
    try:
        return _parsed(ref, stored) if known is None else _parsed_version(ref, stored, known)
    except Exception as error:  # noqa: BLE001 - no object may end what reads all of them
        return _failed(ref, stored, error)


def _failed(ref: Ref, stored: JsonObject, error: Exception) -> Unparsable:
    """An object on which Snaploom's own code failed, such as one that is nested too deeply."""
    finding = make_finding(
        "SL106",
        "this object cannot be read",
        resource=ref.identity,
        path="spec",
        found=type(error).__name__,
        expected="an object as Snaploom's CustomResourceDefinitions describe it",
        hint="correct it and apply it again, or delete it",
    )
    return _refused(ref, stored, (finding,))


def _parsed(ref: Ref, stored: JsonObject) -> Resource | Unparsable:
    document = _without_managed_fields(stored)
    model = KIND_BY_NAME[ref.kind].model
    declared = {key: document[key] for key in document if key != "status"}
    for attempt in (document, declared):
        try:
            return model.parse(attempt)
        except ValidationError:
            continue
    return _refused(ref, stored, read_object(declared).findings)


def _parsed_version(ref: Ref, stored: JsonObject, known: Resource) -> Resource | Unparsable:
    """Parse another version of a resource.

    The API server counts the changes of a spec. Where the count is the same, as after a write of
    the status, the spec is shared: it is parsed once, and in memory once.
    """
    metadata = metadata_of(_without_managed_fields(stored))
    held = known.metadata
    if held.uid is None or held.generation is None:
        return _parsed(ref, stored)
    if (metadata.get("uid"), metadata.get("generation")) != (held.uid, held.generation):
        return _parsed(ref, stored)
    try:
        status = (
            KIND_BY_NAME[known.kind].status.parse(stored["status"]) if "status" in stored else None
        )
        return known.changed(metadata=ObjectMeta.parse(dict(metadata)), status=status)
    except ValidationError:
        return _parsed(ref, stored)


def _without_managed_fields(stored: JsonObject) -> dict[str, JsonValue]:
    """The object without `managedFields`, which are half of its size and never read."""
    metadata = metadata_of(stored)
    if "managedFields" not in metadata:
        return dict(stored)
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**stored, "metadata": kept}


def _refused(ref: Ref, stored: JsonObject, findings: tuple[Finding, ...]) -> Unparsable:
    metadata = Metadata.of(stored)
    return Unparsable(
        now=EpochNanos(0),
        ref=ref,
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
    content = _content(ref, stored, known)
    has_same_spec = getattr(content, "spec", None) is getattr(known, "spec", False)
    if before is not None and isinstance(content, Resource) and has_same_spec:
        return replace(before, version=version, content=content)
    references: frozenset[Ref] = frozenset()
    folders: frozenset[str] = frozenset()
    if isinstance(content, Resource):
        try:
            references, folders = references_of(content), folders_of(content)
        except Exception as error:  # noqa: BLE001 - no object may end what reads all of them
            content = _failed(ref, stored, error)
    uid = content.uid if isinstance(content, Unparsable) else content.metadata.uid or ""
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


_WILDCARD = re.compile(r"[*?\[{\\]")


def read_folders(source: DataSource) -> frozenset[str]:
    """The folders below which a source's files lie, up to the first wildcard of each glob."""
    fixed = (_WILDCARD.split(glob, maxsplit=1)[0] for glob in declared(source).globs)
    return frozenset(comparable_folder(path.rpartition("/")[0]) for path in fixed)


def folders_of(resource: Resource) -> frozenset[str]:
    """The places of an output, or the folders of a source; other kinds have none."""
    if isinstance(resource, OutputDataset):
        return places_of(resource)
    return read_folders(resource) if isinstance(resource, DataSource) else frozenset()


DRIVER_ROLE = "driver"
SPARK_ROLE = "spark-role"
"""Label that Spark itself gives to the pods of driver and executors."""
_QUIET = frozenset(
    {
        "Completed",
        "ContainerCreating",
        "ContainersNotInitialized",
        "ContainersNotReady",
        "PodCompleted",
        "PodInitializing",
    }
)
"""Reasons of normal progress, which are not shown."""

_LABELS = (LABEL_OWNER, LABEL_RUN, LABEL_ROLE, SPARK_ROLE)

_View = Application | OwnedConfigMap | DriverPod | QuotaRequest


@dataclass(frozen=True, slots=True)
class Child:
    """An object of a run."""

    ref: Ref
    version: int
    uid: str
    owner_uid: str
    """UID of the owning resource, from its label."""
    run: str
    view: _View
    report: FoundReport | None
    """The content of a report ConfigMap."""
    trouble: str
    """The cause if it cannot be read; empty if it can."""


class ChildReader:
    """Parses the objects of runs, with the application forms of the usable submitters."""

    def __init__(self, forms: Iterable[ApplicationForm]) -> None:
        self._forms = {kind_key(form.resource.group, form.resource.kind): form for form in forms}

    def read(self, ref: Ref, version: int, stored: JsonObject) -> Child | None:
        """The view of an object; None if it is not ours. Never raises for its content."""
        labels = {name: text_in(labels_of(stored), name) for name in _LABELS}
        owner, uid = labels[LABEL_OWNER], text_in(metadata_of(stored), "uid")
        if not owner:
            return None
        form, report, trouble = self._forms.get(ref.kind), None, ""
        try:
            view: _View | None = form.read(stored) if form is not None else None
            view = view or _view(ref, uid, labels, stored)
            if isinstance(view, OwnedConfigMap) and view.role == REPORT_ROLE:
                report = found_report(stored, view.run, owner)
                trouble = report.trouble
        except Exception as error:  # noqa: BLE001 - no object may end what reads all of them
            trouble = f"{ref} cannot be read: {type(error).__name__}"
            # Its labels are kept, and nothing else.
            if form is not None and (
                ref.kind != "ConfigMap" or labels[LABEL_ROLE] == APPLICATION_ROLE
            ):
                unknown = ApplicationState.UNKNOWN
                view = read_application(stored, form.submitter, unknown, trouble)
            elif ref.kind == "Pod":
                view = DriverPod(ref.name, labels[LABEL_RUN], "Unknown", trouble)
            else:
                view = _config_map(ref, uid, labels) if ref.kind == "ConfigMap" else None
            if isinstance(view, OwnedConfigMap) and view.role == REPORT_ROLE:
                report = FoundReport(view.run, None, trouble)
        if view is None:
            return None
        run = view.name if isinstance(view, Application) else view.run
        return Child(ref, version, uid, owner, run, view, report, trouble)


def _view(ref: Ref, uid: str, labels: Mapping[str, str], stored: JsonObject) -> _View | None:
    status = mapping_in(stored, "status")
    match ref.kind.partition(".")[0]:
        case "ConfigMap":
            return _config_map(ref, uid, labels)
        case "Pod" if labels[LABEL_RUN] and labels[SPARK_ROLE] == DRIVER_ROLE:
            return DriverPod(
                ref.name,
                labels[LABEL_RUN],
                phase=text_in(status, "phase") or "Unknown",
                trouble="; ".join(dict.fromkeys(_troubles(status))),
                unscheduled=_unscheduled(mapping_in(stored, "spec"), status),
            )
        case "Workload" if labels[LABEL_RUN]:
            return _quota_request(labels[LABEL_RUN], status)
        case _:
            return None


def _config_map(ref: Ref, uid: str, labels: Mapping[str, str]) -> OwnedConfigMap | None:
    role = labels[LABEL_ROLE]
    return OwnedConfigMap(ref.name, uid, labels[LABEL_RUN], role) if role else None


def _unscheduled(spec: JsonObject, status: JsonObject) -> str:
    """The reason why it has no node; a scheduler that is late takes back that it is gated."""
    reason = text_in(_condition(status, "PodScheduled", "False"), "reason")
    return "" if reason == GATED and not objects_in(spec, "schedulingGates") else reason


def _quota_request(run: str, status: JsonObject) -> QuotaRequest:
    if _condition(status, "Admitted", "True"):
        return QuotaRequest(run, "")
    asked = _condition(status, "QuotaReserved", "False") or _condition(status, "Admitted", "False")
    return QuotaRequest(run, text_in(asked, "message"))


def _condition(status: JsonObject, kind: str, value: str) -> JsonObject:
    """The condition of a type if it has a status; empty if not."""
    found = (
        each
        for each in objects_in(status, "conditions")
        if (text_in(each, "type"), text_in(each, "status")) == (kind, value)
    )
    return next(found, {})


def _troubles(status: JsonObject) -> list[str]:
    details = [each for each in objects_in(status, "conditions") if each.get("status") == "False"]
    for containers in ("initContainerStatuses", "containerStatuses"):
        for container in objects_in(status, containers):
            state = mapping_in(container, "state")
            details += [mapping_in(state, name) for name in ("waiting", "terminated")]
    messages = [_message(each) for each in details if text_in(each, "reason") not in _QUIET]
    return [text for text in (*messages, text_in(status, "message")) if text]


def _message(detail: JsonObject) -> str:
    code = detail.get("exitCode")
    ended = f"exit code {code}" if isinstance(code, int) else ""
    return joined(text_in(detail, "reason"), text_in(detail, "message") or ended)


def take_seen(
    newest: dict[Ref, LastSeen], namespace: str, found: FoundReport | None, declared: Container[Ref]
) -> set[Ref]:
    """Take the observations of a report that are newer; the sources that they are about.

    They are kept when the report is deleted, so that they do not depend on `run.historyLimit`. A
    report may be forged: sources that nobody declared are not remembered.
    """
    report = None if found is None else found.report
    if report is None:
        return set()
    updated: set[Ref] = set()
    for seen in report.seen:
        source = Ref(DataSource.__name__, namespace, seen.source)
        if source not in declared:
            continue
        known = newest.get(source)
        look = LastSeen(
            run=report.run_id,
            at=report.finished_at or report.started_at,
            latest_snapshot=seen.latest_snapshot,
            snapshots=seen.snapshots,
            # A run that read no row of it knows no schema; keep the previous one.
            schema_fingerprint=seen.schema_fingerprint
            or (known.schema_fingerprint if known is not None else None),
        )
        if newer(look, known):
            newest[source] = look
            updated.add(source)
    return updated


def newer(look: LastSeen, other: LastSeen | None) -> bool:
    """Return whether one observation is newer than another; an invalid time is the oldest."""
    ages = [(known_instant(each.at) or 0, each.run) for each in (look, other) if each is not None]
    return other is None or ages[0] > ages[1]
