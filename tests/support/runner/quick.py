"""`pytest --quick`: of the tests that are asked for, those that need no Spark and no server.

A test is skipped when its module imports pyspark, or when it asks for a fixture that starts a
server. Nothing else can start Spark: pyspark cannot be imported, and no Java is found.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from hypothesis import settings

OPTION = "--quick"

EXAMPLES = 10
"""How many examples of a property are drawn; `make test` draws Hypothesis' hundred, or as many as
the test sets (`examples`)."""

_SPARK = ("pyspark", "py4j")


class _WithoutSpark:
    """A finder of modules that leaves out the test module which imports Spark."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in _SPARK:
            pytest.skip("needs Spark", allow_module_level=True)
        return None


def start() -> None:
    """Make Spark impossible in this process and in those that it starts, and draw few examples."""
    sys.meta_path.insert(0, _WithoutSpark())
    os.environ["JAVA_HOME"] = os.devnull
    os.environ["SPARK_HOME"] = os.devnull
    settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=EXAMPLES)
    settings.load_profile("quick")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print how to run the tests where all of them were left out."""
    stats = terminalreporter.stats
    if stats.get("skipped") and not any(stats.get(each) for each in ("passed", "failed", "error")):
        files = " ".join(config.args)
        terminalreporter.write_line(
            f"Nothing was run: these need Spark or a server, which {OPTION} leaves out."
        )
        terminalreporter.write_line(f"Run instead: make java && .venv/bin/python -m pytest {files}")


def examples(count: int) -> int:
    """How many examples to draw: a test's own count, or fewer in a quick run."""
    return min(count, EXAMPLES) if settings.default.max_examples == EXAMPLES else count
