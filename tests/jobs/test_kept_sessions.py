"""`snaploom session`: the JVM that is kept ready gives the same results, and serves one command."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from support.documentation.commands import end, snaploom_command, wait_until
from support.servers.openlineage import lineage_server
from support.weaving.loom import OUTPUT, Loom, ids

from snaploom.jobs.session.classarchive import VARIABLE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AT = "2024-01-20T00:00:00Z"
HOLDER = "snaploom.jobs.preparedjvm"
OF_A_RUN = re.compile("[rR]unId$|At$|[sS]econds$|[mM]illis$|^file$|^bytes$")
"""Fields of a Report that differ from run to run; files have the identity of the run in them."""
SECRET = "AWS_SECRET_ACCESS_KEY"


class Laptop:
    """Commands of one user, in one folder."""

    def __init__(self, folder: Path, cache: str) -> None:
        self.loom = Loom(folder)
        for day in (1, 2):
            self.loom.write("order", day, ids(*range(day)))
        self.model = str(self.loom.save())
        self.folder = folder / "run"
        self.environment = {"XDG_CACHE_HOME": cache, VARIABLE: "off"}

    def command(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        settings = {**self.environment, **environment}
        process = snaploom_command(*arguments, folder=self.folder, environment=settings)
        return end(process, self.folder)

    def run(self, **environment: str) -> tuple[object, list[object]]:
        """What a run into an empty folder reports and publishes, without times and names."""
        shutil.rmtree(self.loom.out, ignore_errors=True)
        run = ("run", OUTPUT, "-f", self.model, "--now", AT, "-o", "json")
        code, out, err = self.command(*run, **environment)
        assert code == 0, err
        files = sorted(self.loom.out.glob("data/*/*.parquet"))
        rows = [(file.parent.name, pq.read_table(file).to_pylist()) for file in files]
        return without_times(json.loads(out)), [*rows, file_modes(self.loom.out)]

    def is_ready(self) -> bool:
        return "is ready" in self.command("session", "status")[1]

    def holder(self) -> int:
        """The process that holds a JVM; 0 without."""
        return next((each.pid for each in processes_of(self.environment)), 0)


def without_times(document: object) -> object:
    """A Report but for identities of the run, points in time, and how long things took."""
    if isinstance(document, list):
        return [without_times(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {
        name: without_times(value) for name, value in document.items() if not OF_A_RUN.search(name)
    }


def file_modes(folder: Path) -> set[str]:
    return {oct(each.stat().st_mode) for each in folder.rglob("*")}


def processes_of(environment: dict[str, str]) -> Iterator[psutil.Process]:
    """Processes that hold a JVM for commands with a variable of this test."""
    for process in psutil.process_iter(["cmdline"]):
        if HOLDER in (process.info["cmdline"] or []):
            cache = environment["XDG_CACHE_HOME"]
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                if process.environ().get("XDG_CACHE_HOME") == cache:
                    yield process


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    cache = tempfile.mkdtemp()  # the path of a socket is short
    laptop = Laptop(tmp_path, cache)
    yield laptop
    laptop.command("session", "stop")
    wait_until(lambda: not laptop.holder())
    shutil.rmtree(cache)


def test_run_in_the_jvm_that_was_kept_ready_publishes_the_same(laptop: Laptop) -> None:
    plain = laptop.run()
    laptop.command("session", "start")
    assert laptop.run() == plain
    wait_until(laptop.is_ready)
    holder = laptop.holder()
    assert laptop.run() == plain
    wait_until(lambda: not psutil.pid_exists(holder))
    wait_until(laptop.is_ready)
    assert laptop.holder() not in (0, holder)


def test_plan_takes_the_jvm_that_was_prepared_after_a_run(laptop: Laptop) -> None:
    laptop.command("session", "start")
    laptop.run()
    wait_until(laptop.is_ready)
    holder = laptop.holder()
    shutil.rmtree(laptop.loom.out)
    code, out, err = laptop.command("plan", OUTPUT, "-f", laptop.model, "--now", AT)
    assert (code, "2024-01-02" in out) == (0, True), err
    wait_until(lambda: not psutil.pid_exists(holder))


def test_preparation_reports_nothing_to_the_server_of_lineage(laptop: Laptop) -> None:
    with lineage_server() as server:
        laptop.environment["SNAPLOOM_LINEAGE_URL"] = server.url
        laptop.command("session", "start")
        laptop.run()
        wait_until(laptop.is_ready)
        assert {event["job"]["name"] for event in server.events} == {OUTPUT, f"{OUTPUT}.snapshot"}


def test_run_with_a_setting_that_was_allowed_is_not_prepared_for(laptop: Laptop) -> None:
    laptop.loom.spec["run.spark"] = {"sparkConf": {"spark.eventLog.enabled": "false"}}
    laptop.loom.save()
    laptop.command("session", "start")
    run = ("run", OUTPUT, "-f", laptop.model, "--now", AT)
    code, _, err = laptop.command(*run, "--allow", "sparkConf=spark.eventLog.enabled")
    assert code == 0, err
    assert "up; a JVM is prepared after" in laptop.command("session", "status")[1]


def test_run_with_other_credentials_does_not_take_the_jvm(laptop: Laptop) -> None:
    laptop.command("session", "start")
    laptop.run()
    wait_until(laptop.is_ready)
    jvm = psutil.Process(laptop.holder()).children()[0]
    assert SECRET not in jvm.environ()
    laptop.run(**{SECRET: "another"})
    wait_until(laptop.is_ready)
    assert psutil.Process(laptop.holder()).children()[0].environ()[SECRET] == "another"


def test_run_after_the_jvm_was_killed_starts_its_own(laptop: Laptop) -> None:
    laptop.command("session", "start")
    plain = laptop.run()
    wait_until(laptop.is_ready)
    psutil.Process(laptop.holder()).children()[0].kill()
    assert laptop.run() == plain


def test_jvm_of_a_command_that_was_killed_ends(laptop: Laptop) -> None:
    laptop.command("session", "start")
    laptop.run()
    wait_until(laptop.is_ready)
    holder = psutil.Process(laptop.holder())
    (jvm,) = holder.children()
    run = ("run", OUTPUT, "-f", laptop.model, "--now", AT)
    shutil.rmtree(laptop.loom.out)
    process = snaploom_command(*run, folder=laptop.folder, environment=laptop.environment)
    wait_until(lambda: "snapshot 1" in (laptop.folder / "err.txt").read_text(), process)
    process.kill()
    process.wait()
    wait_until(lambda: not holder.is_running() and not jvm.is_running())
