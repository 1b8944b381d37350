"""Plays applications of every submitter, in place of their controllers, Spark and the job.

It reads what the operator created through the same port, so that it works on a cluster in memory
and on a real API server alike. A test moves it step by step.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain, repeat
from typing import Any

from kubernetes.client import ApiClient, ApiException, Configuration, V1ConfigMap

from snaploom.models.report import (
    IndexFacts,
    LatestSnapshot,
    ManifestPointer,
    Progress,
    PublishedSnapshot,
    Removed,
    Report,
    RunPhase,
    SeenSource,
    SnapshotReport,
)
from snaploom.models.run import Submitter
from snaploom.models.skippingindex import IndexedFiles, IndexState
from snaploom.run.clusterobjects import ConfigMapPlace, ConfigMapReport
from snaploom.run.joblog import Owner, RunIdentity
from snaploom_operator.cluster.port import CONFIG_MAPS, PODS, ApiResource, Cluster
from snaploom_operator.errors import ObjectExists, ObjectMissing, ResourceUnknown
from snaploom_operator.objects import Application, ApplicationState
from snaploom_operator.submit import local
from snaploom_operator.submit.applications import FORMS, ApplicationForm
from snaploom_operator.submit.manifests import report_name

STARTED = "2024-05-01T00:00:00Z"
FINISHED = "2024-05-01T00:10:00Z"

S = ApplicationState


def report(phase: RunPhase = RunPhase.SUCCEEDED, **facts: Any) -> Report:
    """A Report of no owner yet: that is filled in when it is written."""
    finished = None if phase is RunPhase.RUNNING else FINISHED
    return Report(
        **{"output": "", "run_id": "", "started_at": STARTED, "finished_at": finished} | facts,
        phase=phase,
    )


def published(*times: str, rows: int = 100, sequence: int = 1, **facts: Any) -> Report:
    """A run that published snapshots; without times, one of 2024-05-01."""
    moments = times or ("2024-05-01T00:00:00Z",)
    return report(
        **{
            "snapshots": tuple(
                SnapshotReport(
                    time=time,
                    partition=f"day={time[:10]}",
                    rows=rows,
                    files=1,
                    bytes=rows * 10,
                    seconds=1.5,
                    sequence=sequence + number,
                )
                for number, time in enumerate(moments)
            ),
            "newest": LatestSnapshot(
                time=moments[-1],
                published_at=FINISHED,
                partition=f"day={moments[-1][:10]}",
                rows=rows,
                files=1,
                bytes=rows * 10,
            ),
            "published": tuple(PublishedSnapshot(time=t, rows=rows) for t in reversed(moments)),
            "snapshot_count": len(moments),
            "manifest": ManifestPointer(uri="/out/", sequence=sequence + len(moments) - 1),
            "seen": (SeenSource(source="customers", latest_snapshot=moments[-1], snapshots=3),),
        }
        | facts
    )


def progressing(snapshot: int = 1, snapshots: int = 2, message: str = "") -> Report:
    text = message or f"snapshot {snapshot} of {snapshots}"
    progress = Progress(snapshot=snapshot, snapshots=snapshots, message=text)
    return report(RunPhase.RUNNING, progress=progress)


def failed(
    message: str = "a source cannot be read",
    reason: str = "SourceNotReadable",
    retryable: bool = True,
) -> Report:
    return report(RunPhase.FAILED, message=message, reason=reason, retryable=retryable)


def indexed(state: IndexState = IndexState.ACTIVE, stale: int = 0) -> Report:
    """A run that refreshed an index."""
    files = IndexedFiles(indexed=4, stale=stale, missing=0)
    return report(index=IndexFacts(state=state, files=files, bytes=400, done=("refreshed",)))


def removed(files: int = 3) -> Report:
    """A run that deleted what was published."""
    return report(removed=Removed(files=files, bytes=files * 10), snapshot_count=0)


def report_manifest(written: Report, namespace: str, name: str, owner: Owner, run: str) -> Raw:
    """The ConfigMap that a job of this Snaploom writes; labels name the run, whatever is in it."""
    recorder = _Recorder()
    identity = RunIdentity(run, written.uid, written.attempt or 0)
    place = ConfigMapPlace(namespace, name)
    ConfigMapReport(place, owner, identity, lambda: recorder).write(written)  # type: ignore[arg-type,return-value]
    plain: Raw = ApiClient(Configuration()).sanitize_for_serialization(recorder.written)
    return plain


class _Recorder:
    """The two calls of a job's first Report, answered by a cluster without one."""

    written: V1ConfigMap | None = None

    def read_namespaced_config_map(self, *_: Any, **__: Any) -> V1ConfigMap:
        raise ApiException(status=HTTPStatus.NOT_FOUND)

    def create_namespaced_config_map(self, _: str, body: V1ConfigMap, **__: Any) -> V1ConfigMap:
        self.written = body
        return body


@dataclass(frozen=True)
class State:
    """Its controller writes it."""

    state: ApplicationState
    message: str = ""


@dataclass(frozen=True)
class Pod:
    """The driver's pod is in this phase; it is created where there is none."""

    phase: str
    reason: str = ""
    """Reason of the condition that is not met, or of the container that waits or ended."""
    message: str = ""
    exit_code: int | None = None


@dataclass(frozen=True)
class Reported:
    """The job writes its Report."""

    report: Report


@dataclass(frozen=True)
class Hold:
    """Nothing more happens until the test continues."""


Step = State | Pod | Reported | Hold
Script = tuple[Step, ...]
Chooser = Callable[[Application], Script]


def completes(final: Report | None = None, *, running: Report | None = None) -> Script:
    """It runs and ends well.

    Args:
        final: its last Report.
        running: its Report while it runs.
    """
    return (
        *_until_running(),
        Reported(running or progressing()),
        Reported(final or published()),
        *_ends(S.SUCCEEDING, S.COMPLETED, Pod("Succeeded", "Completed", exit_code=0)),
    )


def fails(
    final: Report | None = None, message: str = "driver container failed with ExitCode: 1"
) -> Script:
    """It runs and fails, with a reason."""
    ended = Pod("Failed", "Error", exit_code=1)
    ending = _ends(S.FAILING, S.FAILED, ended, message)
    return (*_until_running(), Reported(final or failed()), *ending)


def hangs_in(state: ApplicationState) -> Script:
    """It gets as far as this, and no farther."""
    way = (*_until_running(), State(S.SUCCEEDING))
    for length, step in enumerate(way, start=1):
        if isinstance(step, State) and step.state is state:
            return way[:length]
    return () if state is S.NEW else (*_until_running(), State(state))


def through(*states: ApplicationState) -> Script:
    """It reports one after another, and nothing else happens."""
    return tuple(State(state) for state in states)


def in_turn(*scripts: Script) -> Chooser:
    """A further script for every further application; the last one for all that follow."""
    order = chain(scripts, repeat(scripts[-1]))
    return lambda _: next(order)


def _until_running() -> Script:
    return (State(S.SUBMITTED), Pod("Pending"), Pod("Running"), State(S.RUNNING))


def _ends(passing: ApplicationState, last: ApplicationState, pod: Pod, message: str = "") -> Script:
    return (pod, State(passing, message), State(last, message))


MOMENT = "2024-05-01T00:00:00Z"
APACHE_WORDS: Mapping[ApplicationState, str] = {
    S.SUBMITTED: "DriverRequested",
    S.RUNNING: "RunningHealthy",
    S.COMPLETED: "ResourceReleased",
    S.FAILED: "ResourceReleased",
    S.SUBMISSION_FAILED: "SchedulingFailure",
    S.PENDING_RERUN: "ScheduledToRestart",
    S.SUCCEEDING: "Succeeded",
    S.FAILING: "Failed",
}
"""States of Apache's operator; it has none for the others, and keeps the last one then."""


@dataclass(frozen=True)
class Place:
    resource: ApiResource
    submitter: Submitter
    namespace: str
    name: str
    labels: Raw
    owner_kind: str
    owner_name: str
    reference: Raw
    """Owner reference to the application."""

    @property
    def pod_name(self) -> str:
        return f"{self.name}-driver"

    @property
    def subresource(self) -> str:
        return "" if self.submitter is Submitter.LOCAL else "status"

    def state_patch(self, stored: Raw, state: ApplicationState, message: str) -> Raw:
        """What its controller writes when it comes to a state."""
        return _PATCHES[self.submitter](stored, state, message)

    def pod(self) -> Raw:
        """Its driver's pod, as Spark creates it."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.pod_name,
                "namespace": self.namespace,
                "labels": {**self.labels, "spark-role": "driver"},
                "ownerReferences": [self.reference],
            },
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "spark-kubernetes-driver", "image": "spark"}],
            },
        }


def place_of(form: ApplicationForm, stored: Raw) -> Place:
    metadata = stored["metadata"]
    owner = metadata["ownerReferences"][0]
    return Place(
        resource=form.resource,
        submitter=form.submitter,
        namespace=metadata["namespace"],
        name=metadata["name"],
        labels=dict(metadata["labels"]),
        owner_kind=owner["kind"],
        owner_name=owner["name"],
        reference={
            "apiVersion": form.resource.api_version,
            "kind": form.resource.kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        },
    )


def _spark_operator(stored: Raw, state: ApplicationState, message: str) -> Raw:
    written = {"state": state.value, "errorMessage": message or None}
    status: Raw = {"applicationState": written, "driverInfo": {}}
    if state not in (S.NEW, S.SUBMISSION_FAILED):
        status["driverInfo"] = {"podName": f"{stored['metadata']['name']}-driver"}
        status["executionAttempts"] = 1
        status["lastSubmissionAttemptTime"] = MOMENT
    if state.is_terminal:
        status["terminationTime"] = MOMENT
    return {"status": status}


def _apache(stored: Raw, state: ApplicationState, message: str) -> Raw:
    status = stored.get("status", {})
    history = dict(status.get("stateTransitionHistory", {}))
    kept = status.get("currentState", {}).get("currentStateSummary", "Submitted")
    entry = {
        "currentStateSummary": APACHE_WORDS.get(state, kept),
        "lastTransitionTime": MOMENT,
        "message": message,
    }
    if state is S.FAILED and not any(_is_failure(one) for one in history.values()):
        history[str(len(history))] = {**entry, "currentStateSummary": "Failed"}
    history[str(len(history))] = entry
    return {"status": {"currentState": entry, "stateTransitionHistory": history}}


def _is_failure(entry: Raw) -> bool:
    return entry["currentStateSummary"] in ("Failed", "SchedulingFailure")


def _local(stored: Raw, state: ApplicationState, message: str) -> Raw:
    data: Raw = {local.STATE: state.value, local.MESSAGE: message}
    if state is S.RUNNING:
        data[local.STARTED_AT] = MOMENT
    if state.is_terminal:
        data[local.FINISHED_AT] = MOMENT
    return {"data": data}


_PATCHES: Mapping[Submitter, Callable[[Raw, ApplicationState, str], Raw]] = {
    Submitter.SPARK_OPERATOR: _spark_operator,
    Submitter.APACHE_SPARK: _apache,
    Submitter.LOCAL: _local,
}


Raw = dict[str, Any]


@dataclass
class Played:
    """One application, and what is still to become of it."""

    place: Place
    application: Application
    left: deque[Step]
    state: ApplicationState = ApplicationState.NEW

    @property
    def is_done(self) -> bool:
        """Whether nothing more happens, for now at least."""
        return not self.left or isinstance(self.left[0], Hold)


class JobDouble:
    """Plays every application of a cluster.

    Args:
        cluster: where it looks for them.
        script: what becomes of each, or what chooses it.
        namespace: where it looks; None for everywhere.
    """

    def __init__(
        self,
        cluster: Cluster,
        script: Script | Chooser | None = None,
        *,
        namespace: str | None = None,
    ) -> None:
        self.seen: list[Application] = []
        """Every application, in the order in which it was first seen."""
        self._cluster = cluster
        self._script = completes() if script is None else script
        self._namespace = namespace
        self._played: dict[str, Played] = {}

    async def step(self, *, at_once: int = 1) -> bool:
        """Play one step of every application, so many at a time; whether there was one to play."""
        await self._look()
        ready = [played for played in self._played.values() if not played.is_done]
        left = iter(ready)

        async def work() -> None:
            for played in left:
                await self._play(played, played.left.popleft())

        await asyncio.gather(*(work() for _ in range(at_once)))
        return bool(ready)

    async def end(self, name: str | None = None, *, at_once: int = 1) -> dict[str, float]:
        """Play all that is left of every application, or of one.

        Args:
            name: the application; None for every one.
            at_once: applications that are played at the same time.

        Returns:
            Seconds since 1970 at which each had ended, by namespace and name of its resource.
        """
        left = iter([p for p in self._played.values() if name in (None, p.application.name)])
        ended: dict[str, float] = {}

        async def work() -> None:
            for played in left:
                while not played.is_done:
                    await self._play(played, played.left.popleft())
                ended[f"{played.place.namespace}/{played.place.owner_name}"] = time.time()

        await asyncio.gather(*(work() for _ in range(at_once)))
        return ended

    def release(self) -> None:
        """Go on where a script holds."""
        for played in self._played.values():
            if played.left and isinstance(played.left[0], Hold):
                played.left.popleft()

    async def _look(self) -> None:
        """Add new applications, and drop deleted ones."""
        found: dict[str, Played] = {}
        for form in FORMS.values():
            for stored in await self._listed(form):
                application = form.read(stored)
                if application is None or application.is_deleting:
                    continue
                known = self._played.get(application.uid)
                found[application.uid] = known or self._take_in(form, stored, application)
        self._played = found

    async def _listed(self, form: ApplicationForm) -> list[Raw]:
        try:
            listing = await self._cluster.list(
                form.resource, namespace=self._namespace, selector="snaploom.io/run"
            )
        except ResourceUnknown:
            return []
        return [dict(stored) for stored in listing.items]

    def _take_in(self, form: ApplicationForm, stored: Raw, application: Application) -> Played:
        self.seen.append(application)
        place = place_of(form, stored)
        script = self._script if isinstance(self._script, tuple) else self._script(application)
        return Played(place, application, deque(script))

    async def _play(self, played: Played, step: Step) -> None:
        with suppress(ObjectMissing):  # it was deleted meanwhile, and is forgotten by the next look
            match step:
                case State():
                    await self._write_state(played, step)
                case Pod():
                    await self._show_pod(played, step)
                case Reported():
                    await self._report(played, step)

    async def _write_state(self, played: Played, step: State) -> None:
        place = played.place
        stored = await self._cluster.get(place.resource, place.namespace, place.name)
        patch = place.state_patch(dict(stored), step.state, step.message)
        await self._cluster.patch(
            place.resource, place.namespace, place.name, patch, subresource=place.subresource
        )
        played.state = step.state

    async def _show_pod(self, played: Played, step: Pod) -> None:
        if played.application.submitter is Submitter.LOCAL:
            return
        place = played.place
        with suppress(ObjectExists):
            await self._cluster.create(PODS, place.namespace, place.pod())
        status = pod_status(step)
        await self._cluster.patch(
            PODS, place.namespace, place.pod_name, {"status": status}, subresource="status"
        )

    async def _report(self, played: Played, step: Reported) -> None:
        application, place = played.application, played.place
        owner = Owner(place.owner_kind, place.owner_name, place.namespace)
        written = step.report.model_copy(
            update={
                "output": owner.label,
                "run_id": application.name,
                "uid": application.owner_uid,
                "attempt": application.attempt,
            }
        )
        name = report_name(application.name)
        manifest = report_manifest(written, place.namespace, name, owner, application.name)
        try:
            await self._cluster.create(CONFIG_MAPS, place.namespace, manifest)
        except ObjectExists:
            patch = {"data": manifest["data"]}
            await self._cluster.patch(CONFIG_MAPS, place.namespace, name, patch)


def pod_status(step: Pod) -> Raw:
    """The status of a driver's pod."""
    status: Raw = {"phase": step.phase, "conditions": [], "containerStatuses": []}
    container: Raw = {
        "name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": False,
        "restartCount": 0,
    }  # fmt: skip
    detail = {
        key: text for key, text in (("reason", step.reason), ("message", step.message)) if text
    }
    if step.exit_code is not None:
        ended = {"terminated": detail | {"exitCode": step.exit_code}}
        status["containerStatuses"] = [container | {"state": ended}]
    elif step.reason:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", **detail}]
    return status
