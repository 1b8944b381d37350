"""`cd theirs && snaploom ...`: of a folder of others nothing runs but what is declared."""

import json
import os
import socket
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark
import pytest
from support.declared.declarations import document
from support.documentation.commands import end, start
from support.weaving.loom import NOW, OUTPUT, Loom, ids

import snaploom.run.submit
from snaploom.localfiles import private_folder

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
def test_nothing_of_the_working_folder_is_run(work, theirs):
    command, expected = work(theirs)
    printed = theirs.run(*command)
    assert not theirs.sprung.exists(), theirs.sprung.read_text()
    assert expected in printed


# Another user of a laptop, who reaches its ports and its temporary files, reads no row.


SESSION_PROGRAM = """
import json, sys
from snaploom.run.session.spark import build_session
from snaploom.models.run import RunSettings

spark = build_session("users", RunSettings())
frame = spark.range(8).selectExpr("concat('cached-row-', id) AS text").repartition(2).persist()
rows = frame.count()
kept = frame.rdd.map(lambda row: row.text).persist()
kept.count()
print(json.dumps({
    "application": spark.sparkContext.applicationId,
    "block": f"rdd_{kept.id()}_0",
    "rows": rows,
    "settings": dict(spark.sparkContext.getConf().getAll()),
    "java": spark._jvm.java.lang.ProcessHandle.current().pid(),
}), flush=True)
sys.stdin.readline()
"""
OPEN_BLOCKS, RPC_REQUEST, FETCH_CHUNK = 0, 3, 0
RPC_RESPONSE, CHUNK = 4, 1


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """What a session of the user has, while it is at work."""
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path_factory.mktemp("tmp")),
        "SPARK_LOCAL_DIRS": str(tmp_path_factory.mktemp("local")),
    }
    work = subprocess.Popen(
        [sys.executable, "-c", SESSION_PROGRAM],
        env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    found = json.loads(work.stdout.readline())
    yield {**found, "temporary": environment["TMPDIR"], "local": environment["SPARK_LOCAL_DIRS"]}
    work.communicate("\n", timeout=60)


class OtherUser:
    """Speaks to Spark's service for blocks as executors do, and knows no secret."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=5)

    def ask(self, kind: int, content: bytes) -> tuple[int, bytes]:
        """The kind and content of an answer; empty where the connection is closed."""
        self._socket.sendall(struct.pack(">qb", 9 + len(content), kind) + content)
        head = self._read(9)
        if not head:
            return -1, b""
        length, answered = struct.unpack(">qb", head)
        return answered, self._read(length - 9)

    def block(self, application: str, name: str) -> bytes:
        """A block as it is kept; empty where it is refused."""
        texts = [application.encode(), b"driver"]
        body = bytes([OPEN_BLOCKS]) + b"".join(map(counted, texts))
        body += struct.pack(">i", 1) + counted(name.encode())
        kind, answer = self.ask(RPC_REQUEST, struct.pack(">qi", 1, len(body)) + body)
        if kind != RPC_RESPONSE:
            return b""
        stream = answer[8 + 4 + 1 :][:8]  # behind the request, the length and the kind
        kind, answer = self.ask(FETCH_CHUNK, stream + struct.pack(">i", 0))
        return answer if kind == CHUNK else b""

    def _read(self, count: int) -> bytes:
        found = b""
        with suppress(OSError):  # a port of something else may wait for more
            while len(found) < count and (piece := self._socket.recv(count - len(found))):
                found += piece
        return found if len(found) == count else b""


def counted(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def test_cached_rows_are_shown_to_nobody_without_the_secret(session: dict[str, object]) -> None:
    assert session["rows"] == 8
    listening = [
        each.laddr
        for each in psutil.Process(int(str(session["java"]))).net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 2
    for address in listening:
        other = OtherUser("127.0.0.1", address.port)
        assert other.block(str(session["application"]), str(session["block"])) == b""


def test_secret_is_in_no_setting_and_no_argument(session: dict[str, object]) -> None:
    settings = dict(session["settings"])  # type: ignore[call-overload]
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.ui.enabled"] == "false"
    arguments = " ".join(psutil.Process(int(str(session["java"]))).cmdline())
    assert "secret" not in f"{[*settings]} {arguments}".lower()


def test_temporary_files_are_where_nobody_else_can_enter(session: dict[str, object]) -> None:
    (folder,) = Path(str(session["temporary"])).iterdir()
    (local,) = Path(str(session["local"])).iterdir()
    assert [each.stat().st_mode & 0o777 for each in (folder, local)] == [0o700, 0o700]
    assert [*local.glob("blockmgr-*")]
    process = psutil.Process(int(str(session["java"])))
    shared = Path("/tmp")
    opened = [Path(each.path) for each in process.open_files() if shared in Path(each.path).parents]
    assert all({folder, local} & {*each.parents} for each in opened), opened


def test_folder_of_that_name_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    taken = private_folder()
    assert private_folder() == taken
    for mode in (0o755, 0o770, 0o701):
        taken.chmod(mode)
        other = private_folder()
        assert other != taken
        assert other.stat().st_mode & 0o777 == 0o700
    taken.rmdir()
    taken.symlink_to(other)
    assert private_folder() not in (taken, other)
