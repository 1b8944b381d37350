"""Frozen views of the objects of runs: applications, ConfigMaps and driver pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import from_json

from snaploom.models.report import REPORT_FORMAT, Report
from snaploom_operator.objectmetadata import labels_of, mapping_in, metadata_of, text_in
from snaploom_operator.objects import (
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    Application,
    ApplicationState,
    DriverPod,
    FoundReport,
    JsonObject,
    Ref,
)
from snaploom_operator.observed import OwnedConfigMap
from snaploom_operator.store.references import group_of, kind_key, ref_of
from snaploom_operator.submitters.applications import read_application
from snaploom_operator.submitters.base import ApplicationForm
from snaploom_operator.submitters.local import ROLE as APPLICATION_ROLE

REPORT_ROLE = "report"
REPORT_KEY = "report.json"
"""Key of the ConfigMap under which the job writes its Report."""
LONGEST_REPORT = 1_048_576
"""Characters of a report that are parsed: all that a ConfigMap holds."""
MOST_VALUES = 100_000
"""Values of a report that are parsed. A job writes at most 900 KB, with some 20 bytes a value; so
many take some 50 ms, and a megabyte of other brackets would take ten times as long."""
DRIVER_ROLE = "driver"
SPARK_ROLE = "spark-role"
"""Label that Spark itself gives to the pods of driver and executors."""


@dataclass(frozen=True, slots=True)
class Child:
    """An object of a run."""

    ref: Ref
    version: int
    uid: str
    owner_uid: str
    """UID of the owning resource, from its label."""
    run: str
    view: Application | OwnedConfigMap | DriverPod
    report: FoundReport | None = None
    """The content of a report ConfigMap."""
    stored: JsonObject | None = None
    """An application as it is stored."""
    trouble: str = ""
    """Why it cannot be read; empty if it can."""


class ChildReader:
    """Parses the objects of runs.

    Args: forms: the application forms of the usable submitters.
    """

    def __init__(self, forms: Iterable[ApplicationForm]) -> None:
        self._forms = {kind_key(form.resource.group, form.resource.kind): form for form in forms}

    def read(self, stored: JsonObject, version: int) -> Child | None:
        """The view of an object; None if it is not ours. Never raises for its content."""
        form = self._forms.get(kind_key(group_of(stored), text_in(stored, "kind")))
        try:
            return _read(stored, version, form)
        except Exception as error:  # noqa: BLE001 - no object may end what reads all of them
            trouble = f"{ref_of(stored)} cannot be read: {type(error).__name__}"
            return _unreadable(stored, version, form, trouble)


def _read(stored: JsonObject, version: int, form: ApplicationForm | None) -> Child | None:
    application = form.read(stored) if form is not None else None
    if application is not None:
        return _child(stored, version, application, owner=application.owner_uid)
    match text_in(stored, "kind"):
        case "ConfigMap":
            return _config_map(stored, version)
        case "Pod":
            return _driver_pod(stored, version)
        case _:
            return None


def _unreadable(
    stored: JsonObject, version: int, form: ApplicationForm | None, trouble: str
) -> Child | None:
    """An object on which Snaploom's own code failed: its labels, and nothing else."""
    labels, metadata = labels_of(stored), metadata_of(stored)
    owner, run, role = (text_in(labels, key) for key in (LABEL_OWNER, LABEL_RUN, LABEL_ROLE))
    name, uid, kind = text_in(metadata, "name"), text_in(metadata, "uid"), text_in(stored, "kind")
    view: Application | OwnedConfigMap | DriverPod | None = None
    report = None
    if form is not None and (kind != "ConfigMap" or role == APPLICATION_ROLE):
        view = read_application(stored, form.submitter, ApplicationState.UNKNOWN, trouble)
    elif kind == "ConfigMap" and role:
        view = OwnedConfigMap(name, uid, run, role)
        report = FoundReport(run, None, trouble) if role == REPORT_ROLE else None
    elif kind == "Pod":
        view = DriverPod(name, run, "Unknown", trouble)
    if view is None or not owner:
        return None
    return _child(stored, version, view, owner=owner, report=report, trouble=trouble)


def _child(
    stored: JsonObject,
    version: int,
    view: Application | OwnedConfigMap | DriverPod,
    *,
    owner: str,
    report: FoundReport | None = None,
    trouble: str = "",
) -> Child:
    run = view.name if isinstance(view, Application) else view.run
    return Child(
        ref=ref_of(stored),
        version=version,
        uid=text_in(metadata_of(stored), "uid"),
        owner_uid=owner,
        run=run,
        view=view,
        report=report,
        stored=_slim(stored) if isinstance(view, Application) else None,
        trouble=trouble or (report.trouble if report is not None else ""),
    )


def _slim(stored: JsonObject) -> JsonObject:
    metadata = metadata_of(stored)
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**stored, "metadata": kept}


def _config_map(stored: JsonObject, version: int) -> Child | None:
    labels, metadata = labels_of(stored), metadata_of(stored)
    role, owner = text_in(labels, LABEL_ROLE), text_in(labels, LABEL_OWNER)
    if not role or not owner:
        return None
    run = text_in(labels, LABEL_RUN)
    view = OwnedConfigMap(text_in(metadata, "name"), text_in(metadata, "uid"), run, role)
    report = found_report(stored, run, owner) if role == REPORT_ROLE else None
    return _child(stored, version, view, owner=owner, report=report)


def found_report(stored: JsonObject, run: str, owner: str) -> FoundReport:
    """The Report that a ConfigMap holds.

    Args:
        stored: the ConfigMap.
        run: name of the run that it should be about.
        owner: UID of the resource that the run belongs to.
    """
    text = text_in(mapping_in(stored, "data"), REPORT_KEY)
    try:
        raw: JsonValue = from_json(text) if _is_bounded(text) else None
        written = raw.get("format") if isinstance(raw, dict) else None
        if isinstance(written, int) and written > REPORT_FORMAT:
            return FoundReport(
                run,
                None,
                f"the report has format {str(written)[:20]}, and this Snaploom reads up to "
                f"{REPORT_FORMAT}: upgrade the operator",
            )
        report = Report.parse(raw)
    except ValueError:  # also of JSON: too deep, or a number of too many digits
        return FoundReport(run, None, f"ConfigMap {run}-report has no valid report")
    if (report.uid, report.run_id) != (owner, run):
        return FoundReport(run, None, f"ConfigMap {run}-report is about another run")
    return FoundReport(run, report)


def _is_bounded(text: str) -> bool:
    """Whether a report may be parsed: the event loop does that."""
    return len(text) <= LONGEST_REPORT and sum(map(text.count, ",[{")) <= MOST_VALUES


def _driver_pod(stored: JsonObject, version: int) -> Child | None:
    labels = labels_of(stored)
    run = text_in(labels, LABEL_RUN)
    owner = text_in(labels, LABEL_OWNER)
    if not run or not owner or text_in(labels, SPARK_ROLE) != DRIVER_ROLE:
        return None
    status = mapping_in(stored, "status")
    pod = DriverPod(
        name=text_in(metadata_of(stored), "name"),
        run=run,
        phase=text_in(status, "phase") or "Unknown",
        trouble="; ".join(dict.fromkeys(_troubles(status))),
    )
    return _child(stored, version, pod, owner=owner)


def _troubles(status: JsonObject) -> list[str]:
    """Messages of false conditions, and of waiting or terminated containers."""
    messages = [
        _message(condition)
        for condition in _objects(status, "conditions")
        if condition.get("status") == "False" and text_in(condition, "reason") not in _QUIET
    ]
    for container in (
        *_objects(status, "initContainerStatuses"),
        *_objects(status, "containerStatuses"),
    ):
        state = mapping_in(container, "state")
        for name in ("waiting", "terminated"):
            detail = mapping_in(state, name)
            if detail and text_in(detail, "reason") not in _QUIET:
                messages.append(_message(detail))
    message = text_in(status, "message")
    return [text for text in (*messages, message) if text]


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


def _objects(values: JsonObject, key: str) -> list[Mapping[str, JsonValue]]:
    members = values.get(key)
    return [item for item in members if isinstance(item, dict)] if isinstance(members, list) else []


def _message(detail: Mapping[str, JsonValue]) -> str:
    reason, message = text_in(detail, "reason"), text_in(detail, "message")
    code = detail.get("exitCode")
    ended = f"exit code {code}" if isinstance(code, int) else ""
    return ": ".join(part for part in (reason, message or ended) if part)
