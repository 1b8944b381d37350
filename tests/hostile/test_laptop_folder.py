"""`cd theirs && snaploom ...`: of a folder of others nothing runs but what is declared."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from support.declared.declarations import document
from support.documentation.commands import end, start
from support.weaving.loom import NOW, OUTPUT, Loom, ids

import snaploom.run.submit

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SNAPLOOM = str(Path(sys.executable).with_name("snaploom"))
MODULES = ("numpy", "pandas", "py4j", "pyarrow", "pydantic", "sitecustomize", "snaploom", "yaml")
REGISTER = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
METRICS = """*.sink.trap.class=org.apache.hadoop.metrics2.sink.FileSink
*.sink.trap.filename={sprung}
"""
SESSION = """
from snaploom.run.session.spark import build_session
from snaploom.models.run import RunSettings

spark = build_session("theirs", RunSettings())
spark._jvm.org.apache.hadoop.metrics2.lib.DefaultMetricsSystem.initialize("s3a")
print(spark.read.text("below/data.txt").collect()[0].value)
"""


@dataclass
class Theirs:
    """A folder that somebody made, in which the user stands."""

    place: Path
    loom: Loom
    cache: str

    @property
    def here(self) -> Path:
        return self.place / "theirs" / "cwd"

    @property
    def sprung(self) -> Path:
        """Has what was run of the folder."""
        return self.place / "sprung"

    def run(self, *command: str) -> str:
        """What a program prints, with both of its ends."""
        environment = {
            "XDG_CACHE_HOME": self.cache,
            "SNAPLOOM_CLASS_ARCHIVE": "off",
            "PYSPARK_PYTHON": sys.executable,
        }
        done = end(start(command, self.here.parent, environment), self.here.parent)
        return "\n".join(map(str, done))


def set_traps(theirs: Theirs) -> None:
    """Files that Python, Spark, Hadoop, Java or Derby would load if they looked for them here."""
    (theirs.here / "pyspark").mkdir(parents=True)
    trap = f"open({str(theirs.sprung)!r}, 'a').write(f'{{__file__}}\\n')\nraise ImportError('trap')"
    for name in {*sys.stdlib_module_names, *MODULES}:
        (theirs.here / f"{name}.py").write_text(trap)
    (theirs.here / "pyspark" / "__init__.py").write_text(trap)
    script = f"#!/bin/sh\necho $0 >> '{theirs.sprung}'\n"
    for folder in (theirs.here, theirs.here.parent):
        for name in ("bin", "conf", "jars", "metastore_db"):
            (folder / name).mkdir()
        for settings in (folder, folder / "conf"):
            (settings / "spark-defaults.conf").write_text("spark.extraListeners no.such.Listener\n")
            (settings / "log4j2.properties").write_text("rootLogger.level = no-level\n")
            (settings / "hadoop-metrics2.properties").write_text(
                METRICS.format(sprung=theirs.sprung)
            )
            (settings / "core-site.xml").write_text("no XML")
            (settings / "derby.properties").write_text("derby.infolog.append=true\n")
        for program in (
            "conf/spark-env.sh",
            "bin/spark-submit",
            "bin/java",
            "bin/load-spark-env.sh",
        ):
            (folder / program).write_text(script)
            (folder / program).chmod(0o755)
        for jar in ("trap.jar", "jars/trap.jar"):
            with zipfile.ZipFile(folder / jar, "w") as opened:
                opened.writestr(REGISTER, "no.such.Source")


@pytest.fixture
def theirs(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    loom = Loom(tmp_path / "loom", folder={"dataFormat": "JSONL", "dataCompression": "NONE"})
    loom.write("order", 1, ids(0, 1))
    theirs = Theirs(tmp_path, loom, str(tmp_path_factory.mktemp("c")))
    set_traps(theirs)
    return theirs


def index(target: dict[str, object], theirs: Theirs) -> dict[str, object]:
    """A declaration of an index, whose values Python's workers collect."""
    return document(
        "SkippingIndex",
        "ids",
        {
            "target": target,
            "indexes": [
                {"type": "MIN_MAX", "column": "data.id" if "outputDataset" in target else "id"}
            ],
            "refresh": {"trigger": "ON_PUBLISH" if "outputDataset" in target else "MANUAL"},
            "store": {"parquet": {"location": f"file://{theirs.place}/indexes/"}},
        },
    )


def run_with_an_index(theirs: Theirs) -> tuple[Sequence[str], str]:
    theirs.loom.more = [index({"outputDataset": OUTPUT}, theirs)]
    theirs.loom.save(theirs.here / "model.yaml")
    return (SNAPLOOM, "run", "--all", "-f", ".", "--now", NOW), "refresh 1 file"


def apply_an_index(theirs: Theirs) -> tuple[Sequence[str], str]:
    (theirs.here / "data").mkdir()
    (theirs.here / "data" / "a.csv").write_text("id\n1\n")
    options = {"uri": f"file://{theirs.here}/data/", "format": "csv"}
    path = {**options, "options": {"header": "true", "inferSchema": "true"}}
    theirs.loom.more = [index({"path": path}, theirs)]
    theirs.loom.save(theirs.here / "model.yaml")
    return (SNAPLOOM, "index", "apply", "-f", "."), "refresh 1 file"


def submit_the_job(theirs: Theirs) -> tuple[Sequence[str], str]:
    run_with_an_index(theirs)
    home = Path(pyspark.__file__).parent  # without it spark-submit itself looks into `..`
    submit = ("env", f"SPARK_HOME={home}", f"{home}/bin/spark-submit", "--master", "local[2]")
    return (*submit, str(snaploom.run.submit.__file__), "--config", "model.yaml"), "published"


def fetch_a_driver(theirs: Theirs) -> tuple[Sequence[str], str]:
    return (SNAPLOOM, "drivers", "install", "no.such:driver:1", "--unlisted"), "cannot be fetched"


def open_a_session(theirs: Theirs) -> tuple[Sequence[str], str]:
    (theirs.here / "below").mkdir()
    (theirs.here / "below" / "data.txt").write_text("read from here")
    program = theirs.place / "program.py"
    program.write_text(SESSION)
    return (sys.executable, str(program)), "read from here"


@pytest.mark.parametrize(
    "work", [run_with_an_index, apply_an_index, submit_the_job, fetch_a_driver, open_a_session]
)
def test_nothing_of_the_working_folder_is_run(
    work: Callable[[Theirs], tuple[Sequence[str], str]], theirs: Theirs
) -> None:
    command, expected = work(theirs)
    printed = theirs.run(*command)
    assert not theirs.sprung.exists(), theirs.sprung.read_text()
    assert expected in printed
