"""What holds for every folder of tests; fixtures of theirs are in tests/support/*/*fixtures.py."""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.runner import apart, quick, timings

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

_OF_CLUSTERS = {"cluster", "controller"}
"""Folders of tests that start servers of Kubernetes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our own."""
    parser.addoption(quick.OPTION, action="store_true", help="only tests without Spark and servers")
    parser.addoption(timings.OPTION, metavar="FILE", help="write the seconds of each test file")


def pytest_configure(config: pytest.Config) -> None:
    """Load the fixtures; those of servers would import Spark."""
    target = config.getoption(timings.OPTION)
    if target and not hasattr(config, "workerinput"):
        config.pluginmanager.register(timings.Timings(Path(target)))
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
    left_out = [item for item in items if not apart.is_asked_for(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
    seconds = timings.kept_seconds()

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
