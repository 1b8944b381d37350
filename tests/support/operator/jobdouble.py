"""Plays applications of every submitter, in place of their controllers, Spark and the job.

It reads what the operator created through the same port, so that it works on a cluster in memory
and on a real API server alike. A test moves it step by step, or lets it run beside the operator.

```python
double = JobDouble(cluster, in_turn(fails(), completes()))
await double.to(ApplicationState.RUNNING)   # every application gets that far
await double.finish()                       # and to its end
async with double.running():                # or it plays by itself
    ...
```
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from support.operator.jobplaces import Place, place_of
from support.operator.jobreports import report_manifest
from support.operator.jobscripts import (
    Chooser,
    Gone,
    Hold,
    Pod,
    PodGone,
    Recreated,
    Reported,
    ReportText,
    Script,
    State,
    Step,
    completes,
)

from snaploom.models.report import Report
from snaploom.models.run import Submitter
from snaploom.run.clusterobjects import KEY
from snaploom.run.joblog import Owner
from snaploom_operator.cluster.port import CONFIG_MAPS, PODS, Cluster
from snaploom_operator.errors import ObjectExists, ObjectMissing, ResourceUnknown
from snaploom_operator.objects import Application, ApplicationState
from snaploom_operator.submit.applications import FORMS, ApplicationForm
from snaploom_operator.submit.manifests import report_name

Raw = dict[str, Any]
MOST_STEPS = 10_000
"""A double that is not done by then never will be."""


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

    async def step(self, name: str | None = None, *, at_once: int = 1) -> bool:
        """Play one step of every application, or of one; whether there was one to play.

        Args:
            name: the application; None for every one.
            at_once: applications that are played at the same time.
        """
        await self._look()
        ready = [
            played
            for played in self._played.values()
            if name in (None, played.application.name) and not played.is_done
        ]
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

    async def to(self, state: ApplicationState, name: str | None = None) -> None:
        """Play until every application, or one, has been in a state, or is done."""
        for _ in range(MOST_STEPS):
            await self._look()
            behind = [
                played.application.name
                for played in self._played.values()
                if name in (None, played.application.name)
                and played.state is not state
                and not played.is_done
            ]
            if not behind:
                return
            for each in behind:
                await self.step(each)
        raise AssertionError(f"no application came to {state}")

    async def finish(self, name: str | None = None) -> None:
        """Play until nothing more happens."""
        for _ in range(MOST_STEPS):
            if not await self.step(name):
                return
        raise AssertionError("applications go on for ever")

    def release(self) -> None:
        """Go on where a script holds."""
        for played in self._played.values():
            if played.left and isinstance(played.left[0], Hold):
                played.left.popleft()

    @asynccontextmanager
    async def running(self, seconds: float = 0.01) -> AsyncIterator[JobDouble]:
        """Play by itself, a step each so many seconds, until the block ends."""
        task = asyncio.create_task(self._run(seconds))
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self, seconds: float) -> None:
        while True:
            await self.step()
            await asyncio.sleep(seconds)

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
        before = next((p for p in self._played.values() if self._is_again(p, application)), None)
        self.seen.append(application)
        place = place_of(form, stored)
        if before is not None:
            return Played(place, application, before.left)
        script = self._script if isinstance(self._script, tuple) else self._script(application)
        return Played(place, application, deque(script))

    def _is_again(self, played: Played, application: Application) -> bool:
        """Whether an application is one that this double deleted and created again."""
        known = played.application
        return (known.name, known.owner_uid) == (application.name, application.owner_uid)

    async def _play(self, played: Played, step: Step) -> None:
        with suppress(ObjectMissing):  # it was deleted meanwhile, and is forgotten by the next look
            match step:
                case State():
                    await self._write_state(played, step)
                case Pod():
                    await self._show_pod(played, step)
                case PodGone():
                    await self._delete_pod(played)
                case Reported():
                    await self._report(played, step)
                case ReportText():
                    await self._write_report(played, step.text)
                case Gone():
                    await self._delete(played)
                case Recreated():
                    await self._recreate(played)

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

    async def _delete_pod(self, played: Played) -> None:
        place = played.place
        stored: Any = await self._cluster.get(PODS, place.namespace, place.pod_name)
        uid = stored["metadata"]["uid"]
        await self._cluster.delete(PODS, place.namespace, place.pod_name, uid=uid)

    async def _report(self, played: Played, step: Reported) -> None:
        application, place = played.application, played.place
        owner = Owner(place.owner_kind, place.owner_name, place.namespace)
        written = step.report.model_copy(
            update={
                "output": owner.label,
                "run_id": step.run or application.name,
                "uid": step.uid or application.owner_uid,
                "attempt": application.attempt,
            }
        )
        await self._write_report(played, written)

    async def _write_report(self, played: Played, written: Report | str) -> None:
        application, place = played.application, played.place
        owner = Owner(place.owner_kind, place.owner_name, place.namespace)
        name = report_name(application.name)
        model = written if isinstance(written, Report) else _nothing(application)
        manifest = report_manifest(model, place.namespace, name, owner, application.name)
        # Labels and owner decide whose it is; its text may be wrong.
        manifest["metadata"]["labels"]["snaploom.io/owner-uid"] = application.owner_uid
        for reference in manifest["metadata"]["ownerReferences"]:
            reference["uid"] = application.owner_uid
        if isinstance(written, str):
            manifest["data"] = {KEY: written}
        try:
            await self._cluster.create(CONFIG_MAPS, place.namespace, manifest)
        except ObjectExists:
            patch = {"data": manifest["data"]}
            await self._cluster.patch(CONFIG_MAPS, place.namespace, name, patch)

    async def _delete(self, played: Played) -> None:
        place, uid = played.place, played.application.uid
        await self._cluster.delete(place.resource, place.namespace, place.name, uid=uid)

    async def _recreate(self, played: Played) -> None:
        place = played.place
        stored: Any = await self._cluster.get(place.resource, place.namespace, place.name)
        kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
        metadata = {key: stored["metadata"][key] for key in kept if key in stored["metadata"]}
        manifest = {key: value for key, value in stored.items() if key != "status"}
        await self._delete(played)
        for _ in range(MOST_STEPS):
            with suppress(ObjectExists):
                manifest["metadata"] = metadata
                await self._cluster.create(place.resource, place.namespace, manifest)
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{place.name} is not deleted")


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
    if step.waits:
        status["containerStatuses"] = [container | {"state": {"waiting": detail}}]
    elif step.exit_code is not None:
        ended = {"terminated": detail | {"exitCode": step.exit_code}}
        status["containerStatuses"] = [container | {"state": ended}]
    elif step.reason:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", **detail}]
    return status


def _nothing(application: Application) -> Report:
    return Report(
        output="", uid=application.owner_uid, run_id=application.name, phase="RUNNING",
        started_at="2024-05-01T00:00:00Z",
    )  # fmt: skip
