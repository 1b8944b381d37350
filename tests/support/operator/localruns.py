"""Local runs for tests: submitted as the operator does, carried out by `fakejob.py`."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from support.operator import fakejob
from support.operator.clusters import until
from support.operator.fakecluster import FakeCluster
from support.operator.runrequests import a_request, an_output

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import CONFIG_MAPS, OURS
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objects import Application, ApplicationState
from snaploom_operator.submit.applications import FORMS
from snaploom_operator.submit.localrunner import Intervals, LocalRunner

Raw = dict[str, Any]
QUICK = Intervals(poll_seconds=0.01, stop_seconds=0.5, report_seconds=5)


class LocalRuns:
    """A namespace, its local runs, and what their programs wrote down."""

    def __init__(self, cluster: FakeCluster, folder: Path) -> None:
        self.cluster = cluster
        self.log = folder / "played"
        self.log.touch()
        self.form = FORMS[Submitter.LOCAL]
        self.environment = {"PLAYED_LOG": str(self.log), "PATH": os.environ["PATH"]}

    def runner(self, **settings: Any) -> LocalRunner:
        program = (sys.executable, fakejob.__file__)
        usual = {"environment": self.environment, "program": program, "intervals": QUICK}
        return LocalRunner(**{"cluster": self.cluster} | usual | settings)

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[None]:
        """A runner at work, until the block ends."""
        task = asyncio.create_task(self.runner(**settings).run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def submit(self, name: str, play: str | None = "ends", **changes: Any) -> None:
        """A run whose program does this; None for one without a Bundle."""
        output = an_output()
        try:
            owner: Any = await self.cluster.get(OURS["OutputDataset"], "default", output.name)
        except ObjectMissing:
            bare: Raw = json.loads(output.dump_json())
            for field in ("uid", "generation"):
                del bare["metadata"][field]
            owner = await self.cluster.create(OURS["OutputDataset"], "default", bare)
        stored = an_output(uid=owner["metadata"]["uid"])
        manifest: Any = self.form.manifest(a_request(stored, name=name, **changes))
        if play is not None:
            bundle = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-bundle"},
                "data": {"bundle.json": json.dumps({"play": play})},
            }
            await self.cluster.create(CONFIG_MAPS, "default", bundle)
        await self.cluster.create(CONFIG_MAPS, "default", manifest)

    async def stored(self, name: str) -> Raw:
        found: Any = await self.cluster.get(CONFIG_MAPS, "default", name)
        return dict(found)

    async def application(self, name: str) -> Application:
        found = self.form.read(await self.stored(name))
        assert found is not None
        return found

    async def ended(self, name: str) -> Application:
        """The run, once it has ended."""

        async def is_over() -> bool:
            return (await self.application(name)).state.is_terminal

        await until(is_over)
        return await self.application(name)

    async def removed(self, name: str) -> None:
        """Wait until the object of a run is gone: it stays a little longer than the process."""

        async def is_removed() -> bool:
            try:
                await self.stored(name)
            except ObjectMissing:
                return True
            return False

        await until(is_removed)

    async def waiting(self, count: int = 1) -> None:
        """Wait until so many programs do nothing but wait."""

        async def do_they() -> bool:
            return len([line for line in self.played() if line["play"] == "waiting"]) >= count

        await until(do_they)

    async def delete(self, name: str) -> None:
        uid = (await self.stored(name))["metadata"]["uid"]
        await self.cluster.delete(CONFIG_MAPS, "default", name, uid=uid)

    def played(self) -> list[Raw]:
        """What programs wrote down, in order."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def pids(self) -> set[int]:
        return {line["pid"] for line in self.played()}

    async def all_gone(self) -> None:
        """Wait until no program is left."""

        async def are_gone() -> bool:
            return not any(is_alive(pid) for pid in self.pids())

        await until(are_gone)

    def kill_all(self) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    async def states(self, *names: str) -> list[ApplicationState]:
        return [(await self.application(name)).state for name in names]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # before it was opened, or while it is read
        return False
