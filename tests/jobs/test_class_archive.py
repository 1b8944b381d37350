"""A JVM that Snaploom starts on a laptop maps the classes that the one before it archived."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from snaploom.run.session.classarchive import VARIABLE

SESSION = """
import json
from pathlib import Path
from snaploom.run.session.spark import build_session
from snaploom.models.run import RunSettings

spark = build_session("archive", RunSettings())
process = spark._jvm.java.lang.ProcessHandle.current().pid()
maps = Path(f"/proc/{process}/maps").read_text()
print(json.dumps({"maps": "spark.jsa" in maps, "rows": spark.range(9).where("id > 2").count()}))
print(process)
"""
SECONDS = 120
"""For a JVM to write an archive; it takes some eight."""


def result(cache: Path) -> dict[str, object]:
    """What a process of its own computes; its JVM has ended."""
    hidden = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", VARIABLE)
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", SESSION]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found, process = done.stdout.splitlines()
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(process)).wait(SECONDS)
    assert done.stderr == ""
    return dict(json.loads(found))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.spark
def test_second_jvm_maps_what_the_first_one_archived(tmp_path: Path) -> None:
    assert result(tmp_path) == {"maps": False, "rows": 6}
    assert result(tmp_path) == {"maps": True, "rows": 6}
