"""Runs Local applications as processes of this machine, for `snaploom operator run --local`."""

import asyncio
import base64
import binascii
import gzip
import json
import logging
import os
import signal
import socket
import sys
import zlib
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from snaploom.models.common import format_instant, now
from snaploom.models.report import RunPhase
from snaploom_operator import objects
from snaploom_operator.cluster.client import DEFAULT_FILE, KUBECONFIG, SERVICE_HOST
from snaploom_operator.cluster.port import CONFIG_MAPS, Cluster
from snaploom_operator.errors import ClusterError, ObjectChanged, ObjectMissing
from snaploom_operator.submit import local, localprocess
from snaploom_operator.submit.applications import LocalForm
from snaploom_operator.submit.manifests import BUNDLE_KEY, COMPRESSED, found_report, run_arguments

_log = logging.getLogger(__name__)


_NO_REPORT = "the operator was stopped during the run, which wrote no final report"


async def final_state(
    application: objects.Application, namespace: str, report: str, cluster: Cluster
) -> tuple[objects.ApplicationState, str]:
    """State and message of an ended job whose end was not observed.

    A job writes its final Report last, after all that it publishes.

    Raises:
        ClusterError: the request failed, so that the outcome is unknown.
    """
    try:
        stored = await cluster.get(CONFIG_MAPS, namespace, report)
    except ObjectMissing:
        return objects.ApplicationState.FAILED, _NO_REPORT
    found = found_report(stored, application.name, application.owner_uid)
    if found.report is None:
        return objects.ApplicationState.FAILED, f"{_NO_REPORT}: {found.trouble}"
    if found.report.phase is RunPhase.SUCCEEDED:
        return objects.ApplicationState.COMPLETED, ""
    if found.report.phase is RunPhase.RUNNING:
        return objects.ApplicationState.FAILED, _NO_REPORT
    return objects.ApplicationState.FAILED, found.report.message or _NO_REPORT


JOB = (sys.executable, "-m", "snaploom.run.clusterjob")
"""The program of a run, the same as in the image."""
MOST_UNPACKED = 128 * 1024 * 1024
"""Bytes of an unpacked Bundle: the operator's are compressed to a tenth, at most 900,000 bytes."""
_LONGEST_MESSAGE = 1000
_PRIVATE = 0o600


@dataclass(frozen=True)
class Intervals:
    """Seconds."""

    poll_seconds: float = 1.0
    stop_seconds: float = 25.0
    """Grace period of a stopped job; less than the thirty seconds of a pod."""
    report_seconds: float = 5.0
    """Time limit of recording the state of stopped jobs at shutdown."""


@dataclass(frozen=True)
class _Found:
    application: objects.Application
    metadata: objects.Metadata
    data: objects.JsonObject

    @property
    def process(self) -> localprocess.ProcessName | None:
        return localprocess.ProcessName.parse(objects.text_in(self.data, local.PROCESS))

    @property
    def shown(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


class LocalRunner:
    """Runs local applications until it is cancelled.

    The environment is that of the jobs, whole; without namespaces those of all are run, by as many
    workers at a time. `program` is the command of a job, which its arguments follow.
    """

    def __init__(
        self,
        cluster: Cluster,
        environment: Mapping[str, str],
        namespaces: Sequence[str] = (),
        workers: int = 1,
        program: Sequence[str] = JOB,
        intervals: Intervals | None = None,
        host: str | None = None,
    ) -> None:
        self._cluster = cluster
        self._environment = environment
        self._namespaces: Sequence[str | None] = tuple(namespaces) or (None,)
        self._workers = workers
        self._program = program
        self._intervals = intervals or Intervals()
        self._host = host or socket.gethostname()
        self._operator = localprocess.ProcessName.of_this()
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._form = LocalForm()

    async def run(self) -> None:
        """Poll until cancelled; every job is stopped then."""
        try:
            while True:
                with suppress(ClusterError):  # metrics count it; the next poll retries
                    await self.poll()
                await asyncio.sleep(self._intervals.poll_seconds)
        finally:
            await self._stop(list(self._jobs))

    async def poll(self) -> None:
        """Start new runs within the limit, and stop deleted ones.

        Raises:
            ClusterError: the request failed.
        """
        found = {one.application.uid: one for one in await self._listed()}
        wanted = {uid for uid, one in found.items() if not one.application.is_deleting}
        await self._stop([uid for uid in self._jobs if uid not in wanted])
        for uid in sorted(
            found.keys() - self._jobs.keys(), key=lambda u: found[u].application.started_at
        ):
            one = found[uid]
            if self._is_orphaned(one):
                self._begin(uid, self._finish_orphan(one))
            is_new = uid in wanted and one.application.state is objects.ApplicationState.NEW
            if is_new and len(self._jobs) < self._workers:
                self._begin(uid, self._run_job(one))

    async def _listed(self) -> list[_Found]:
        listings = [
            await self._cluster.list(CONFIG_MAPS, namespace=namespace, selector=local.SELECTOR)
            for namespace in self._namespaces
        ]
        read = ((stored, self._form.read(stored)) for each in listings for stored in each.items)
        return [
            _Found(application, objects.Metadata.of(stored), objects.mapping_in(stored, "data"))
            for stored, application in read
            if application is not None
        ]

    def _is_orphaned(self, one: _Found) -> bool:
        """Return whether an operator of this machine started it and has ended."""
        is_here = objects.text_in(one.data, local.HOST) == self._host
        if not is_here or one.application.state is not objects.ApplicationState.RUNNING:
            return False
        if one.application.is_deleting and local.FINALIZER not in one.metadata.finalizers:
            return False  # it is cleaned up; other finalizers hold it
        operator = localprocess.ProcessName.parse(objects.text_in(one.data, local.OPERATOR))
        return operator is None or operator == self._operator or not operator.is_alive

    def _begin(self, uid: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._jobs[uid] = task
        task.add_done_callback(partial(self._ended, uid))

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        self._jobs.pop(uid, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("a local run failed unexpectedly", exc_info=error)

    async def _stop(self, uids: Sequence[str]) -> None:
        tasks = [self._jobs[uid] for uid in uids if uid in self._jobs]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _finish_orphan(self, one: _Found) -> None:
        name = one.process
        # ConfigMaps are writable by users, who could name any process.
        if name is not None and name != self._operator and name.is_alive and name.is_session_leader:
            _log.warning("%s: stopping its job, which an earlier operator started", one.shown)
            await localprocess.stop_orphan(name, self._intervals.stop_seconds)
        with suppress(ClusterError):  # the next poll retries
            report = objects.text_in(one.data, local.REPORT)
            state, message = await final_state(
                one.application, one.metadata.namespace, report, self._cluster
            )
            await self._record_end(one, state, message)

    async def _run_job(self, one: _Found) -> None:
        with TemporaryDirectory(prefix="snaploom-run-") as name:
            folder = Path(name)
            try:
                await self._unpack(one, folder)
            except (ObjectMissing, ValueError) as error:
                await self._record_end(
                    one, objects.ApplicationState.FAILED, f"no Bundle to work on: {error}"
                )
                return
            run, bundle = one.application, str(folder / BUNDLE_KEY)
            report = objects.text_in(one.data, local.REPORT)
            namespace = one.metadata.namespace
            arguments = run_arguments(run, run.owner_uid, bundle, namespace, report)
            process = await localprocess.start_process(
                [*self._program, *arguments],
                self._environment,
                folder,
                partial(_log.info, "%s: %s", one.shown),
            )
            await self._supervise(one, process)

    async def _supervise(self, one: _Found, process: localprocess.LocalProcess) -> None:
        try:
            if not await self._is_claimed(one, process.name):
                return
            process.permit()
            code = await process.wait()
        except asyncio.CancelledError:
            await process.stop(self._intervals.stop_seconds)
            with suppress(ClusterError, TimeoutError):
                async with asyncio.timeout(self._intervals.report_seconds):
                    stopped = "it was stopped together with the operator"
                    await self._write_end(one, objects.ApplicationState.FAILED, stopped)
            raise
        finally:
            await process.stop(self._intervals.stop_seconds)
        if code == 0:
            await self._record_end(one, objects.ApplicationState.COMPLETED, "")
        else:
            await self._record_end(
                one, objects.ApplicationState.FAILED, _failure(code, process.stderr_tail)
            )

    async def _unpack(self, one: _Found, folder: Path) -> None:
        """Write the Bundle into a private file.

        Raises:
            ObjectMissing: the ConfigMap does not exist.
            ValueError: it has no valid Bundle.
        """
        name = objects.text_in(one.data, local.BUNDLE)
        stored = await self._cluster.get(CONFIG_MAPS, one.metadata.namespace, name)
        file = folder / BUNDLE_KEY
        file.touch(_PRIVATE)
        file.write_bytes(await asyncio.to_thread(_content, stored))

    async def _is_claimed(self, one: _Found, process: localprocess.ProcessName) -> bool:
        """Record that it runs here; False if another operator did, or it was deleted.

        From then on a finalizer keeps the ConfigMap until its process has ended.
        """
        data: dict[str, JsonValue] = {
            local.STATE: objects.ApplicationState.RUNNING.value,
            local.STARTED_AT: format_instant(now()),
            local.HOST: self._host,
            local.PROCESS: str(process),
            local.OPERATOR: str(self._operator),
        }
        try:
            await self._patch(one.metadata, data, {*one.metadata.finalizers, local.FINALIZER})
        except (ObjectChanged, ObjectMissing):
            return False
        return True

    async def _record_end(self, one: _Found, state: objects.ApplicationState, message: str) -> None:
        while True:
            try:
                await self._write_end(one, state, message)
            except ClusterError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(self._intervals.poll_seconds)
            else:
                return

    async def _write_end(self, one: _Found, state: objects.ApplicationState, message: str) -> None:
        """Record how it ended, and remove the finalizer: none of its processes is left.

        The state of a run that is being deleted is not changed: its Report counts.
        """
        data: dict[str, JsonValue] = {
            local.STATE: state.value,
            local.MESSAGE: message,
            local.FINISHED_AT: format_instant(now()),
        }
        while True:
            try:
                stored = await self._cluster.get(
                    CONFIG_MAPS, one.metadata.namespace, one.metadata.name
                )
                held = objects.Metadata.of(stored)
                if held.uid == one.metadata.uid:
                    kept = {*held.finalizers} - {local.FINALIZER}
                    await self._patch(held, {} if held.is_deleting else data, kept)
            except ObjectMissing:  # it was deleted: nothing to record
                return
            except ObjectChanged:
                await asyncio.sleep(self._intervals.poll_seconds)
            else:
                return

    async def _patch(
        self, held: objects.Metadata, data: dict[str, JsonValue], finalizers: AbstractSet[str]
    ) -> None:
        """Patch the version that was read, since merge patches replace the list of finalizers."""
        kept: list[JsonValue] = [*sorted(finalizers)]
        metadata: dict[str, JsonValue] = {
            "uid": held.uid,
            "resourceVersion": held.resource_version,
            "finalizers": kept or None,
        }
        patch: objects.JsonObject = {"metadata": metadata, "data": data}
        await self._cluster.patch(CONFIG_MAPS, held.namespace, held.name, patch)


@contextmanager
def job_environment(kubeconfig: Path | None, context: str | None) -> Iterator[dict[str, str]]:
    """The operator's own environment, with its kubeconfig and context; None for the defaults."""
    environment = dict(os.environ)
    file = str(kubeconfig.absolute()) if kubeconfig is not None else environment.get(KUBECONFIG)
    if file is None and SERVICE_HOST in environment:  # the job uses the pod's account too
        yield environment
        return
    environment[KUBECONFIG] = file or DEFAULT_FILE
    with TemporaryDirectory(prefix="snaploom-context-") as folder:
        if context is not None:
            chosen = Path(folder) / "context"
            chosen.write_text(json.dumps({"kind": "Config", "current-context": context}))
            # The job's client uses the current context of the last file that has one.
            environment[KUBECONFIG] += f"{os.pathsep}{chosen}"
        yield environment


def _content(stored: objects.JsonObject) -> bytes:
    """The Bundle of a ConfigMap.

    Raises:
        ValueError: it is missing, or cannot be unpacked.
    """
    text = objects.text_in(objects.mapping_in(stored, "data"), BUNDLE_KEY)
    if text:
        return text.encode()
    packed = objects.text_in(objects.mapping_in(stored, "binaryData"), BUNDLE_KEY + COMPRESSED)
    if not packed:
        raise ValueError(f"the ConfigMap has no {BUNDLE_KEY}")
    try:
        with gzip.open(BytesIO(base64.b64decode(packed))) as opened:
            content = opened.read(MOST_UNPACKED + 1)
    except (binascii.Error, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"the ConfigMap's {BUNDLE_KEY} cannot be unpacked") from error
    if len(content) > MOST_UNPACKED:
        raise ValueError(f"the ConfigMap's {BUNDLE_KEY} has more than {MOST_UNPACKED:,} bytes")
    return content


def _failure(code: int, stderr_tail: str) -> str:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{stderr_tail[-_LONGEST_MESSAGE:]}\n{how}" if stderr_tail else how
