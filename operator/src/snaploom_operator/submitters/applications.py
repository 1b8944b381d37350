"""The common part of all submitters: metadata of applications, and checks of Spark settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from snaploom.models.allowances import Allowances
from snaploom.models.base import ApiModel
from snaploom.models.common import TimestampText
from snaploom.models.podtemplate import PodTemplate
from snaploom.models.run import RunAction, SparkSettings, Submitter, Trigger
from snaploom.models.times import EpochNanos, format_instant, parse_instant
from snaploom.planning.podsettings import Refusal, template_refusals
from snaploom.planning.sparksettings import hint_of, refusals
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.errors import SparkSettingsRefused
from snaploom_operator.instants import known_instant
from snaploom_operator.manifests.childmetadata import child_metadata
from snaploom_operator.objectmetadata import Metadata, metadata_of, text_in
from snaploom_operator.objects import (
    ANNOTATION_TRIGGER,
    LABEL_OWNER,
    LABEL_RUN,
    Application,
    ApplicationState,
    JsonObject,
)
from snaploom_operator.submitters.base import RunRequest
from snaploom_operator.submitters.submissionlogs import cause_in

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
