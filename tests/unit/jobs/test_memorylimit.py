"""What is reported of a container whose memory was used up."""

from __future__ import annotations

from pathlib import Path

import pytest

from snaploom.run.job import JobGroup
from snaploom.run.session.jvm import MemoryLimit

VERSIONS = {
    "v2": ("memory.events", "memory.max", "max"),
    "v1": ("memory/memory.oom_control", "memory/memory.limit_in_bytes", "9223372036854771712"),
}


class GoneSession:
    """A session whose JVM has ended: each call is refused."""

    def __init__(self) -> None:
        self.is_gone = False

    @property
    def sparkContext(self) -> GoneSession:  # noqa: N802 -- as PySpark spells it
        if self.is_gone:
            raise ConnectionRefusedError
        return self

    def setJobGroup(self, *_arguments: object, **_options: object) -> None:  # noqa: N802
        """Accepted while the JVM is there."""


def container(folder: Path, version: str, *, kills: int, limit: str | None = None) -> MemoryLimit:
    events, maximum, unlimited = VERSIONS[version]
    (folder / events).parent.mkdir(exist_ok=True)
    (folder / events).write_text(f"oom_kill_disable 0\noom 7\noom_kill {kills}\n")
    (folder / maximum).write_text((limit or unlimited) + "\n")
    return MemoryLimit(folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_kills_and_limit_are_read_in_both_versions(tmp_path: Path, version: str) -> None:
    found = container(tmp_path, version, kills=3, limit=str(984 << 20))
    assert (found.kills(), found.mebibytes()) == (3, 984)
    assert container(tmp_path, version, kills=0).mebibytes() is None


def test_machine_without_control_groups_has_no_kills_and_no_limit(tmp_path: Path) -> None:
    assert (MemoryLimit(tmp_path).kills(), MemoryLimit(tmp_path).mebibytes()) == (0, None)


@pytest.mark.parametrize(("kills", "cause"), [(1, "was shut down"), (2, "the kernel killed")])
def test_end_of_spark_names_a_kill_during_the_run_only(
    tmp_path: Path, kills: int, cause: str
) -> None:
    session = GoneSession()
    group = JobGroup(container(tmp_path, "v2", kills=1, limit=str(1 << 30)))
    group.enter(session, "run", "a run")  # type: ignore[arg-type]
    session.is_gone = True
    container(tmp_path, "v2", kills=kills, limit=str(1 << 30))
    stopped = group.stopped()
    assert stopped is not None
    assert cause in stopped.message
    assert (stopped.found == "a limit of 1024 MiB") == (kills == 2)


class EndedProcess:
    """A JVM that has ended by itself, or by a signal."""

    def __init__(self, code: int) -> None:
        self._code = code

    def wait(self, _patience: float) -> int:
        """The exit code."""
        return self._code


@pytest.mark.parametrize(
    ("code", "cause"), [(52, "heap was full"), (-9, "was killed"), (143, "was shut down")]
)
def test_end_of_spark_names_what_was_at_work_when_memory_ran_out(
    tmp_path: Path, code: int, cause: str
) -> None:
    session, group = GoneSession(), JobGroup(container(tmp_path, "v2", kills=0))
    group.enter(session, "run", "a run")  # type: ignore[arg-type]
    group.describe("OutputDataset/wide: snapshot 1 with `customers`")
    group._process = EndedProcess(code)  # type: ignore[assignment]
    session.is_gone = True
    stopped = group.stopped()
    assert stopped is not None
    assert cause in stopped.message
    assert ("`customers`" in str(stopped.found)) == (code != 143)
    assert "run.spark.driver.memory" in stopped.hint
