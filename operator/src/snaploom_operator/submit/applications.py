"""The port of submitters, and what their applications have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from snaploom.models.allowances import Allowances
from snaploom.models.base import ApiModel
from snaploom.models.common import TimestampText
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.podtemplate import PodTemplate
from snaploom.models.run import CurrentRun, RunAction, SparkSettings, Submitter, Trigger
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import EpochNanos, format_instant, parse_instant
from snaploom.planning.podsettings import Refusal, template_refusals
from snaploom.planning.secretvariables import SecretKey
from snaploom.planning.sparksettings import hint_of, refusals
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.errors import SparkSettingsRefused
from snaploom_operator.objects import (
    ANNOTATION_TRIGGER,
    LABEL_OWNER,
    LABEL_RUN,
    Application,
    ApplicationState,
    JsonObject,
    Metadata,
    known_instant,
    metadata_of,
    text_in,
)
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.submit.configmaps import child_metadata, namespace_of, report_name, uid_of

# The port of submitters, and the request to submit a run.


@dataclass(frozen=True)
class RunRequest:
    """A run to submit."""

    owner: OutputDataset | SkippingIndex
    """The resource, as it is stored."""
    run: CurrentRun
    """The run; its application has its name."""
    started_at: EpochNanos
    spark: SparkSettings
    """The resource's settings, merged over the operator's; complete."""
    bundle: str
    """Name of the ConfigMap with the Bundle."""
    settings: OperatorSettings
    """The operator's settings."""
    secrets: tuple[SecretKey, ...] = ()
    """Keys of Secrets that its driver gets as environment variables."""


class ApplicationForm(Protocol):
    """Builds and parses the applications of one submitter."""

    @property
    def submitter(self) -> Submitter:
        """The submitter."""
        ...

    @property
    def resource(self) -> ApiResource:
        """Kind of its objects."""
        ...

    def manifest(self, request: RunRequest) -> JsonObject:
        """The object that runs the job, complete, so that no webhook changes it."""
        ...

    def read(self, stored: JsonObject) -> Application | None:
        """The run of an object; None if it is not ours."""
        ...


# Command-line arguments of jobs: names and numbers only, never content of a spec.

JOB_FILE = "local:///opt/snaploom/clusterjob.py"
"""The job's file in the image, which runs `snaploom.jobs.clusterjob`."""


def job_arguments(request: RunRequest, bundle: str) -> list[str]:
    """Arguments of `snaploom.jobs.clusterjob` for a run that is about to be submitted."""
    report = report_name(request.run.name)
    namespace = namespace_of(request.owner)
    return run_arguments(request.run, uid_of(request.owner), bundle, namespace, report)


def run_arguments(
    run: CurrentRun | Application, uid: str, bundle: str, namespace: str, report: str
) -> list[str]:
    """Arguments of the job of a run, by file or folder with its Bundle and name of its Report."""
    return [
        "--bundle", bundle,
        "--uid", uid,
        "--run-id", run.name,
        "--attempt", str(run.attempt),
        "--action", run.action.value.lower(),
        "--report", f"configmap:{namespace}/{report}",
    ]  # fmt: skip


# Extracts the cause of a failed submission from the output of `spark-submit`.

_EXCEPTION = re.compile(r'^(?:Exception in thread "[^"]*"|Caused by:) (?P<cause>.+)$', re.MULTILINE)
_LOGGED = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:TRACE|DEBUG|INFO|WARN) |Using Spark's default log4j profile|"
    r"Setting default log level|To adjust logging level"
)
"""Starts of lines that are unrelated to the failure."""
_STACK = re.compile(r"\s+(?:at |\.\.\. \d+ )")
_WARNING = re.compile(r"WARNING: Using incubator modules: \S+")
_PACKAGES = re.compile(r"^(?:[a-z][\w$]*\.)+(?=[A-Z])")
"""The package of a class name, which is removed."""
_ASKED, _ANSWERED, _AGAIN = "Failure executing: ", ". Message: ", " Received status: Status("
"""Text of Spark's client around the API server's message, which it contains twice."""
_LONGEST = 100_000
"""Characters that are searched. Spark's own message has some 12,000; a user could write a longer
one, and searching it must not block the event loop."""


def cause_in(message: str) -> str:
    """The cause in the message of a failed submission; a message without a log is unchanged."""
    message = message[:_LONGEST]
    if "\n" not in message:
        return message
    causes = [_plain(found["cause"]) for found in _EXCEPTION.finditer(message)]
    if causes:
        # The first has the failed operation, the last its root cause.
        return ": ".join(dict.fromkeys((causes[0], causes[-1])))
    lines = (s for s in message.splitlines() if not (_LOGGED.match(s) or _STACK.match(s)))
    informative = (_WARNING.sub("", line).strip() for line in lines)
    return "\n".join(line for line in informative if line) or message


def _plain(exception: str) -> str:
    asked, _, answered = exception.partition(_ANSWERED)
    if answered and _ASKED in asked:
        return answered.partition(_AGAIN)[0].rstrip(".")
    return _PACKAGES.sub("", exception)


# The common part of all submitters: metadata of applications, and checks of Spark settings.

_SHOWN = 5
"""Refused settings that a message names."""


class RunNote(ApiModel):
    """The annotation of an application with the data that is needed to adopt it."""

    action: RunAction = RunAction.RUN
    """Its action."""
    attempt: int = 0
    """Number of the attempt, from 0."""
    started_at: TimestampText
    """Time of the operator's decision."""
    trigger: Trigger = Trigger()
    """The trigger that started it."""


def application_object(
    resource: ApiResource, request: RunRequest, content: JsonObject, role: str | None = None
) -> JsonObject:
    """The object that runs the job, with the content of a submitter."""
    run = request.run
    note = RunNote(
        action=run.action,
        attempt=run.attempt,
        started_at=format_instant(request.started_at),
        trigger=run.trigger,
    )
    metadata = child_metadata(request.owner, run.name, run.name, role)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {**metadata, "annotations": {ANNOTATION_TRIGGER: note.dump_json()}},
        **content,
    }


def read_application(
    stored: JsonObject, submitter: Submitter, state: ApplicationState, message: str
) -> Application | None:
    """The run of an object; None without an owner's UID, or if it belongs to another run.

    Without a valid annotation it still is ours: it runs, with an unknown trigger.
    """
    metadata = Metadata.of(stored)
    owner = metadata.labels.get(LABEL_OWNER, "")
    if not owner or metadata.labels.get(LABEL_RUN) != metadata.name:
        return None
    try:
        note = RunNote.model_validate_json(metadata.annotations.get(ANNOTATION_TRIGGER, ""))
        started_at = parse_instant(note.started_at)
    except ValueError:
        created = text_in(metadata_of(stored), "creationTimestamp")
        started_at = known_instant(created) or EpochNanos(0)
        note = RunNote(started_at=format_instant(started_at))
    return Application(
        submitter=submitter,
        name=metadata.name,
        uid=metadata.uid,
        owner_uid=owner,
        state=state,
        message=cause_in(message),
        action=note.action,
        attempt=note.attempt,
        trigger=note.trigger,
        started_at=started_at,
        is_deleting=metadata.is_deleting,
    )


def known_state(
    text: str, names: Mapping[str, ApplicationState], message: str
) -> tuple[ApplicationState, str]:
    """State and message from a submitter's state; unknown states become UNKNOWN with a message."""
    state = names.get(text)
    if state is not None:
        return state, message
    unknown = f"its submitter reports an unknown state: {text}"
    return ApplicationState.UNKNOWN, f"{unknown}; {message}" if message else unknown


def checked_settings(request: RunRequest) -> SparkSettings:
    """The complete settings of a run.

    The operator's settings are trusted; those of the resource are checked again here, whether they
    were validated or not.

    Raises:
        SparkSettingsRefused: they reach beyond the run's own pods, or contradict each other.
    """
    spark, allow = request.spark, request.settings.allow
    own = request.owner.spec.run.spark
    refused = (*refusals(own, allow), *_shown_elsewhere(own, spark, allow))
    if refused:
        shown = [f"{one.found} ({one.reason})" for one in refused[:_SHOWN]]
        raise SparkSettingsRefused(
            "Spark settings that a resource may not have",
            resource=request.owner.identity,
            path=refused[0].path,
            found="; ".join(shown),
            hint=hint_of(refused[0]),
        )
    allocation = spark.dynamic_allocation
    if allocation is not None and (allocation.min_executors or 0) > (
        allocation.max_executors or allocation.min_executors or 0
    ):
        raise SparkSettingsRefused(
            "minExecutors is greater than maxExecutors, after merging the operator's settings",
            resource=request.owner.identity,
            path="spec.run.spark.dynamicAllocation",
            found=f"{allocation.min_executors} and {allocation.max_executors}",
            hint="give minExecutors and maxExecutors both",
        )
    return spark


def _shown_elsewhere(
    own: SparkSettings | None, merged: SparkSettings, allow: Allowances
) -> Iterator[Refusal]:
    """Volumes of a resource that the operator's mounts would mount at forbidden paths.

    A volume of the resource replaces the operator's volume of the same name.
    """
    if own is None or own.pod_template is None or merged.pod_template is None:
        return
    names = {volume.name for volume in own.pod_template.volumes}
    theirs = set(merged.pod_template.volume_mounts) - set(own.pod_template.volume_mounts)
    mounts = tuple(mount for mount in theirs if mount.name in names)
    yield from template_refusals(PodTemplate(volume_mounts=mounts), allow)
