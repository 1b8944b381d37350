"""Commands in a process that cannot import Spark."""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

_PROGRAM = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
from snaploom.cli.main import main
main()
"""


def without_spark(
    *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `snaploom` where Spark is installed, and an import of it fails.

    Args:
        arguments: of the command.
        variables: of its environment, beside those of this process.
    """
    spec = find_spec("pyspark")
    assert spec.origin is not None
    environment = {**os.environ, "SPARK_HOME": str(Path(spec.origin).parent), **(variables or {})}
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
