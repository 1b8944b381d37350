"""What holds for every folder of tests; fixtures of theirs are in tests/support/*/*fixtures.py."""

import gc
import json
import os
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.runner import quick

# The same examples in every run: what passed here passes there, and a failure can be seen again.
# `--hypothesis-profile=exploring` draws new ones, which is how faults are looked for.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "exploring", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("repeatable")

_FIXTURES = (
    "cluster.clusterfixtures",
    "servers.databasefixtures",
    "servers.storefixtures",
    "site.browserfixtures",
    "weaving.sparkfixtures",
)
"""Modules of tests/support with fixtures that start servers."""

# Only the first compiler of the JVM, here and in processes that tests start: most plans of tests
# run once, and are over before the second compiler pays (a third of the processor time, measured
# over the proofs). Options of the user's go before.
# With only this one Java reserves 48 MB for compiled code, which the plans of one file of proofs
# fill: without room the JVM compiles no more, or throws away what it has compiled.
# One thread collects garbage: a tenth less processor time for a run of a few seconds.
# Classes come from the archive of `.ci/classes.py`; a JVM that it does not fit logs nothing.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
    f" -XX:SharedArchiveFile={Path(sys.prefix) / 'spark-classes.jsa'}"
    " -Xlog:cds=off -Xlog:cds+dynamic=off",
)


# Compiled modules are kept, those with rewritten assertions too, whatever the environment sets:
# else each process of a run compiles 600 files of ours again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_TIMINGS = "--timings"
"""Option that writes the seconds of each file of tests."""
_KEPT = Path(__file__).parent / "timings.json"
"""Those of the last measurement, which order a run, so that no long file is left to the end."""
_SHOWN = 25
"""How many files the table at the end of a run has: those that are worth a look."""
_OF_CLUSTERS = {"cluster", "controller"}
"""Folders of tests that start servers of Kubernetes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(quick.OPTION, action="store_true", help="only tests without Spark and servers")
    parser.addoption(_TIMINGS, metavar="FILE", help="write the seconds of each test file")


def pytest_configure(config: pytest.Config) -> None:
    """Load the fixtures; those of servers would import Spark."""
    target = config.getoption(_TIMINGS)
    if target and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timings(Path(target)))
    config.pluginmanager.import_plugin("support.site.historyfixtures")
    if config.getoption(quick.OPTION):
        quick.start()
        config.pluginmanager.register(quick)
        config.pluginmanager.import_plugin("support.runner.quickfixtures")
        return
    for name in _FIXTURES:
        config.pluginmanager.import_plugin(f"support.{name}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs apart, and put last what needs a cluster, whose servers slow others down.

    Before these files that take long come first, so that all processes end at the same time.
    """
    left_out = [item for item in items if not _is_asked_for(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
    seconds = json.loads(_KEPT.read_text("utf-8")) if _KEPT.exists() else {}

    def place(item: pytest.Item) -> tuple[bool, float]:
        name = item.nodeid.partition("::")[0]
        return _needs_cluster(item), -seconds.get(name, 0.0)

    if hasattr(config, "workerinput"):  # in a process of `--numprocesses`
        items.sort(key=place)
    else:
        items.sort(key=_needs_cluster)


def pytest_collection_finish() -> None:
    """What has been collected stays: no collection of garbage looks through it again.

    Fourteen thousand tests and all modules are a million objects and more.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Modules of C++ look at the end for what was not collected."""
    gc.unfreeze()


def _needs_cluster(item: pytest.Item) -> bool:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    return folder in _OF_CLUSTERS or "control_plane" in getattr(item, "fixturenames", ())


# Tests that run apart: their mark's description in `pyproject.toml` begins with "apart".


@cache
def _marks(config: pytest.Config) -> frozenset[str]:
    lines: list[str] = config.getini("markers")
    return frozenset(line.partition(":")[0] for line in lines if ": apart, " in line)


def _is_asked_for(item: pytest.Item) -> bool:
    """Whether `-m` names the mark of a test that runs apart, or the command line its file."""
    apart = _marks(item.config).intersection(mark.name for mark in item.iter_markers())
    asked = set(re.findall(r"\w+", item.config.option.markexpr))
    return not apart or bool(apart & asked) or item.path in _named_files(item.config)


@cache
def _named_files(config: pytest.Config) -> frozenset[Path]:
    names = (argument.partition("::")[0] for argument in config.args)
    return frozenset((config.invocation_params.dir / name).resolve() for name in names)


# Seconds of each file of tests, added up and written when the run ends.


class Timings:
    """A plugin that adds up the seconds of each file and writes them when the run ends."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the seconds of a test's setup, call or teardown."""
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the file, and show the files that took longest."""
        ordered = sorted(self._seconds.items(), key=lambda each: -each[1])
        rounded = {name: round(seconds, 1) for name, seconds in sorted(self._seconds.items())}
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._target.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
        terminalreporter.section("seconds by file")
        for name, seconds in ordered[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        terminalreporter.write_line(f"{sum(self._seconds.values()):8.1f}  all")
