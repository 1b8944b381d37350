"""Runs Local applications as processes of this machine, for `snaploom operator run --local`.

The ConfigMap of a run (`submitters/local.py`) is all that counts: what happens is written into it,
and deleting it stops the run. A job is written down together with its process before it may begin,
so that an operator which was killed leaves nothing that its successor does not find: what still
runs is then stopped, and what is gone has failed.

Jobs have the operator's own environment, credentials included, and its rights: whoever may create
resources in the namespaces that are looked after decides what runs here.
"""

from __future__ import annotations

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from snaploom.models.times import format_instant, now
from snaploom_operator.cluster.connection import DEFAULT_FILE, KUBECONFIG, SERVICE_HOST
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import CONFIG_MAPS
from snaploom_operator.errors import ClusterError, ObjectChanged, ObjectMissing
from snaploom_operator.local.process import (
    LocalProcess,
    ProcessName,
    start_process,
    stop_stranger,
)
from snaploom_operator.manifests.configmaps import BUNDLE_KEY, COMPRESSED
from snaploom_operator.metadata import Metadata, mapping_in, text_in
from snaploom_operator.objects import Application, ApplicationState, JsonObject
from snaploom_operator.submitters import local
from snaploom_operator.submitters.arguments import local_arguments

JOB = (sys.executable, "-m", "snaploom.jobs.clusterjob")
"""The program that carries a run out, as the image has it too."""
MOST_UNPACKED = 128 * 1024 * 1024
"""Bytes of a Bundle: what the operator writes shrinks to a tenth, of at most 900,000 bytes."""
_LONGEST_MESSAGE = 1000
_PRIVATE = 0o600
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """Seconds."""

    between_looks: float = 1.0
    """Between two looks at what is to be done."""
    grace: float = 25.0
    """That a job has to end by itself; less than the thirty of a pod."""
    farewell: float = 5.0
    """That the cluster has to take in what became of the jobs when the operator ends."""


@dataclass(frozen=True)
class _Found:
    """A local run as it was last listed."""

    application: Application
    metadata: Metadata
    data: JsonObject

    @property
    def process(self) -> ProcessName | None:
        """The process that it is, as it was written down."""
        return ProcessName.parse(text_in(self.data, local.PROCESS))

    @property
    def shown(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


class LocalRunner:
    """Runs what is there to run, so many at once, until it is cancelled.

    Args:
        cluster: where the runs are.
        environment: environment of the jobs, whole.
        namespaces: where to look; empty for everywhere.
        workers: how many jobs run at once.
        program: what carries a run out; arguments follow.
        pace: how long things take.
        host: name of this machine.
    """

    def __init__(
        self,
        cluster: Cluster,
        environment: Mapping[str, str],
        namespaces: Sequence[str] = (),
        workers: int = 1,
        program: Sequence[str] = JOB,
        pace: Pace | None = None,
        host: str | None = None,
    ) -> None:
        self._cluster = cluster
        self._environment = environment
        self._namespaces: Sequence[str | None] = tuple(namespaces) or (None,)
        self._workers = workers
        self._program = program
        self._pace = pace or Pace()
        self._host = host or socket.gethostname()
        self._operator = ProcessName.of_this()
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._form = local.LocalForm()

    @property
    def is_busy(self) -> bool:
        """Whether a job of ours runs, or is being seen to."""
        return bool(self._jobs)

    async def run(self) -> None:
        """Look again and again; on cancellation every job is stopped first."""
        try:
            while True:
                with suppress(ClusterError):  # the metrics of the port tell; the next look helps
                    await self.look()
                await asyncio.sleep(self._pace.between_looks)
        finally:
            await self._stop(list(self._jobs))

    async def look(self) -> None:
        """Begin what is new, as far as there is room, and stop what is not wanted any more.

        Raises:
            ClusterError: the cluster does not answer.
        """
        found = {one.application.uid: one for one in await self._listed()}
        wanted = {uid for uid, one in found.items() if not one.application.is_deleting}
        await self._stop([uid for uid in self._jobs if uid not in wanted])
        for uid in sorted(
            wanted - self._jobs.keys(), key=lambda u: found[u].application.started_at
        ):
            one = found[uid]
            if self._is_left_behind(one):
                self._begin(uid, self._clear_up(one))
            elif self._is_new(one) and len(self._jobs) < self._workers:
                self._begin(uid, self._carry_out(one))

    async def _listed(self) -> list[_Found]:
        listings = [
            await self._cluster.list(CONFIG_MAPS, namespace=namespace, selector=local.SELECTOR)
            for namespace in self._namespaces
        ]
        read = ((stored, self._form.read(stored)) for each in listings for stored in each.items)
        return [
            _Found(application, Metadata.of(stored), mapping_in(stored, "data"))
            for stored, application in read
            if application is not None
        ]

    def _is_new(self, one: _Found) -> bool:
        return one.application.state is ApplicationState.NEW

    def _is_left_behind(self, one: _Found) -> bool:
        """Whether an operator of this machine began it, and does not see to it any more."""
        is_here = text_in(one.data, local.HOST) == self._host
        if not is_here or one.application.state is not ApplicationState.RUNNING:
            return False
        operator = ProcessName.parse(text_in(one.data, local.OPERATOR))
        return operator is None or operator == self._operator or not operator.is_alive

    def _begin(self, uid: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._jobs[uid] = task
        task.add_done_callback(partial(self._ended, uid))

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        self._jobs.pop(uid, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("a local run could not be carried out", exc_info=error)

    async def _stop(self, uids: Sequence[str]) -> None:
        tasks = [self._jobs[uid] for uid in uids if uid in self._jobs]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _clear_up(self, one: _Found) -> None:
        name = one.process
        # Whoever may write ConfigMaps may have written this one, and name any process.
        if name is not None and name != self._operator and name.is_alive and name.leads_a_session:
            _log.warning("%s: its job outlived an operator, and is stopped", one.shown)
            await stop_stranger(name, self._pace.grace)
        await self._tell_end(one, ApplicationState.FAILED, "the operator was stopped while it ran")

    async def _carry_out(self, one: _Found) -> None:
        with TemporaryDirectory(prefix="snaploom-run-") as name:
            folder = Path(name)
            try:
                await self._unpack(one, folder)
            except (ObjectMissing, ValueError) as error:
                await self._tell_end(one, ApplicationState.FAILED, f"no Bundle to work on: {error}")
                return
            process = await start_process(
                [*self._program, *self._arguments(one, folder)],
                self._environment,
                folder,
                partial(_log.info, "%s: %s", one.shown),
            )
            await self._see_through(one, process)

    async def _see_through(self, one: _Found, process: LocalProcess) -> None:
        """From the start of a process to its end, whatever ends it."""
        try:
            if not await self._is_claimed(one, process.name):
                return
            process.permit()
            code = await process.wait()
        except asyncio.CancelledError:
            await process.stop(self._pace.grace)
            with suppress(ClusterError, TimeoutError):
                async with asyncio.timeout(self._pace.farewell):
                    stopped = "it was stopped together with the operator"
                    await self._tell(one, ApplicationState.FAILED, stopped)
            raise
        finally:
            await process.stop(self._pace.grace)
        if code == 0:
            await self._tell_end(one, ApplicationState.COMPLETED, "")
        else:
            await self._tell_end(one, ApplicationState.FAILED, _failure(code, process.said))

    def _arguments(self, one: _Found, folder: Path) -> list[str]:
        bundle, report = str(folder / BUNDLE_KEY), text_in(one.data, local.REPORT)
        return local_arguments(one.application, bundle, one.metadata.namespace, report)

    async def _unpack(self, one: _Found, folder: Path) -> None:
        """Write the Bundle into a file that only we may read.

        Raises:
            ObjectMissing: there is no such ConfigMap.
            ValueError: it holds no Bundle.
        """
        name = text_in(one.data, local.BUNDLE)
        stored = await self._cluster.get(CONFIG_MAPS, one.metadata.namespace, name)
        file = folder / BUNDLE_KEY
        file.touch(_PRIVATE)
        file.write_bytes(await asyncio.to_thread(_content, stored))

    async def _is_claimed(self, one: _Found, process: ProcessName) -> bool:
        """Write down that it runs here; not when somebody else was quicker, or it is gone."""
        data: dict[str, JsonValue] = {
            local.STATE: ApplicationState.RUNNING.value,
            local.STARTED_AT: format_instant(now()),
            local.HOST: self._host,
            local.PROCESS: str(process),
            local.OPERATOR: str(self._operator),
        }
        try:
            await self._patch(one, data, version=one.metadata.resource_version)
        except (ObjectChanged, ObjectMissing):
            return False
        return True

    async def _tell_end(self, one: _Found, state: ApplicationState, message: str) -> None:
        """Write down how it ended, however long the cluster takes to listen."""
        while True:
            try:
                await self._tell(one, state, message)
            except ClusterError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(self._pace.between_looks)
            else:
                return

    async def _tell(self, one: _Found, state: ApplicationState, message: str) -> None:
        data: dict[str, JsonValue] = {
            local.STATE: state.value,
            local.MESSAGE: message,
            local.FINISHED_AT: format_instant(now()),
        }
        with suppress(ObjectMissing, ObjectChanged):  # it was deleted: nobody wants to know
            await self._patch(one, data)

    async def _patch(
        self, one: _Found, data: dict[str, JsonValue], version: str | None = None
    ) -> None:
        metadata: dict[str, JsonValue] = {"uid": one.metadata.uid}
        if version is not None:
            metadata["resourceVersion"] = version
        patch: JsonObject = {"metadata": metadata, "data": data}
        await self._cluster.patch(CONFIG_MAPS, one.metadata.namespace, one.metadata.name, patch)


@contextmanager
def job_environment(kubeconfig: Path | None, context: str | None) -> Iterator[dict[str, str]]:
    """The operator's own environment, with the way to its cluster.

    Args:
        kubeconfig: the file that it was started with; None for the usual ones.
        context: the context that it was started with; None for the current one.
    """
    environment = dict(os.environ)
    file = str(kubeconfig.absolute()) if kubeconfig is not None else environment.get(KUBECONFIG)
    if file is None and SERVICE_HOST in environment:  # a pod: the job finds its way as we do
        yield environment
        return
    environment[KUBECONFIG] = file or DEFAULT_FILE
    with TemporaryDirectory(prefix="snaploom-context-") as folder:
        if context is not None:
            chosen = Path(folder) / "context"
            chosen.write_text(json.dumps({"kind": "Config", "current-context": context}))
            # Of several files the last one that names a context is right for the job's client.
            environment[KUBECONFIG] += f"{os.pathsep}{chosen}"
        yield environment


def _content(stored: JsonObject) -> bytes:
    """What a ConfigMap with a Bundle holds.

    Raises:
        ValueError: there is nothing in it, or it cannot be unpacked.
    """
    text = text_in(mapping_in(stored, "data"), BUNDLE_KEY)
    if text:
        return text.encode()
    packed = text_in(mapping_in(stored, "binaryData"), BUNDLE_KEY + COMPRESSED)
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


def _failure(code: int, said: str) -> str:
    """Why a job ended; its last words are the ones that count."""
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{said[-_LONGEST_MESSAGE:]}\n{how}" if said else how
