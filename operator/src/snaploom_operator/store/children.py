"""Frozen views of the objects of runs: applications, ConfigMaps and driver pods."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from snaploom.models.common import EpochNanos
from snaploom.models.datasource import DataSource, LastSeen
from snaploom_operator.conditions import joined
from snaploom_operator.decision import OwnedConfigMap
from snaploom_operator.objects import (
    GATED,
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    Application,
    ApplicationState,
    DriverPod,
    FoundReport,
    JsonObject,
    QuotaRequest,
    Ref,
    group_of,
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

    def read(self, stored: JsonObject, version: int) -> Child | None:
        """The view of an object; None if it is not ours. Never raises for its content."""
        form = self._forms.get(kind_key(group_of(stored), text_in(stored, "kind")))
        owner = text_in(labels_of(stored), LABEL_OWNER)
        if not owner:
            return None
        report, trouble = None, ""
        try:
            view = _view(stored, form)
            if isinstance(view, OwnedConfigMap) and view.role == REPORT_ROLE:
                report = found_report(stored, view.run, owner)
                trouble = report.trouble
        except Exception as error:  # noqa: BLE001 - no object may end what reads all of them
            trouble = f"{ref_of(stored)} cannot be read: {type(error).__name__}"
            view = _unreadable(stored, form, trouble)
            if isinstance(view, OwnedConfigMap) and view.role == REPORT_ROLE:
                report = FoundReport(view.run, None, trouble)
        if view is None:
            return None
        uid = text_in(metadata_of(stored), "uid")
        run = view.name if isinstance(view, Application) else view.run
        return Child(ref_of(stored), version, uid, owner, run, view, report, trouble)


def _view(stored: JsonObject, form: ApplicationForm | None) -> _View | None:
    application = form.read(stored) if form is not None else None
    if application is not None:
        return application
    match text_in(stored, "kind"):
        case "ConfigMap":
            return _config_map(stored)
        case "Pod":
            return _driver_pod(stored)
        case "Workload":
            return _quota_request(stored)
        case _:
            return None


def _unreadable(stored: JsonObject, form: ApplicationForm | None, trouble: str) -> _View | None:
    """The view of an object on which Snaploom's own code failed: its labels, and nothing else."""
    kind, role = text_in(stored, "kind"), text_in(labels_of(stored), LABEL_ROLE)
    if form is not None and (kind != "ConfigMap" or role == APPLICATION_ROLE):
        return read_application(stored, form.submitter, ApplicationState.UNKNOWN, trouble)
    if kind == "Pod":
        name = text_in(metadata_of(stored), "name")
        return DriverPod(name, text_in(labels_of(stored), LABEL_RUN), "Unknown", trouble)
    return _config_map(stored) if kind == "ConfigMap" else None


def _config_map(stored: JsonObject) -> OwnedConfigMap | None:
    labels, metadata = labels_of(stored), metadata_of(stored)
    role, run = text_in(labels, LABEL_ROLE), text_in(labels, LABEL_RUN)
    name, uid = text_in(metadata, "name"), text_in(metadata, "uid")
    return OwnedConfigMap(name, uid, run, role) if role else None


def _driver_pod(stored: JsonObject) -> DriverPod | None:
    labels, status = labels_of(stored), mapping_in(stored, "status")
    run = text_in(labels, LABEL_RUN)
    if not run or text_in(labels, SPARK_ROLE) != DRIVER_ROLE:
        return None
    return DriverPod(
        name=text_in(metadata_of(stored), "name"),
        run=run,
        phase=text_in(status, "phase") or "Unknown",
        trouble="; ".join(dict.fromkeys(_troubles(status))),
        unscheduled=_unscheduled(mapping_in(stored, "spec"), status),
    )


def _unscheduled(spec: JsonObject, status: JsonObject) -> str:
    """The reason why it has no node; a scheduler that is late takes back that it is gated."""
    reason = text_in(_condition(status, "PodScheduled", "False"), "reason")
    return "" if reason == GATED and not objects_in(spec, "schedulingGates") else reason


def _quota_request(stored: JsonObject) -> QuotaRequest | None:
    run, status = text_in(labels_of(stored), LABEL_RUN), mapping_in(stored, "status")
    if not run:
        return None
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
    return other is None or _age(look) > _age(other)


def _age(look: LastSeen) -> tuple[EpochNanos, str]:
    return known_instant(look.at) or EpochNanos(0), look.run
