"""A small model whose sources are Parquet files, woven by real jobs into a folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession
from support.declared.declarations import Raw, document, put
from support.documentation.commands import start

from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, now, parse_instant
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.report import Report
from snaploom.output.folder import CrashPoint, Folder, open_folder
from snaploom.output.leaseholder import TERMS, LeaseTerms, OpenLease
from snaploom.output.state import FolderState
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.run import clusterjob
from snaploom.run.job import Job
from snaploom.run.runevents import Event, Interruption
from snaploom.run.weaving.outputrun import weave_output
from snaploom.run.weaving.requests import AS_DECLARED, RunOptions

PYTHON = (sys.executable,)
SPARK_SUBMIT = (str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]")
UID = "5c1e7f9a-0000-4000-8000-000000000000"
RUN = "ods-wide-0a1b2c3d"


@dataclass(frozen=True)
class ClusterJob:
    """One run after the other, each with a Bundle of its own."""

    place: Path

    def arguments(self, bundle: Bundle, *more: str) -> list[str]:
        """Arguments of a run, whose Bundle is written."""
        folder = self.place / "bundle"
        folder.mkdir(exist_ok=True)
        (folder / "bundle.json").write_text(bundle.dump_json(), "utf-8")
        report = [] if "--report" in more else ["--report", f"file:{self.report_file}"]
        return ["--bundle", str(folder), "--uid", UID, "--run-id", RUN, *report, *more]

    @property
    def report_file(self) -> Path:
        return self.place / "report.json"

    @property
    def report(self) -> Report:
        return Report.model_validate_json(self.report_file.read_text("utf-8"))

    def run(self, bundle: Bundle, *more: str) -> tuple[int, Report]:
        """Run in this process; exit code and last Report."""
        code = clusterjob.main(self.arguments(bundle, *more))
        return code, self.report

    def start(self, bundle: Bundle, program: Sequence[str] = PYTHON) -> subprocess.Popen[str]:
        """Start as a process of its own, by the path of the file."""
        command = [*program, str(clusterjob.__file__), *self.arguments(bundle)]
        return start(command, self.place / "process", {"PYSPARK_PYTHON": sys.executable})

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        code = process.wait(240)
        return code, (self.place / "process" / "err.txt").read_text()


OUTPUT = "wide"
NOW = "2024-01-20T00:00:00Z"
START = {
    "year": 2024, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nano": 0,
    "timezone": "UTC",
}  # fmt: skip


def pass_by(_point: CrashPoint) -> None:
    return None


@dataclass
class Loom:
    """Sources in daily folders, an output with daily intervals; tests change what they are about.

    Every source has a key `id`; `order` is the root.
    """

    place: Path
    """Where sources and output lie."""
    others: list[Raw] = field(default_factory=list)
    """`otherDataSources`, of which `fieldName` defaults to the source's name."""
    folder: Raw = field(default_factory=dict)
    """Changes below `outputFolder`, by dotted path."""
    spec: Raw = field(default_factory=dict)
    """Changes below the output's `spec`, by dotted path."""
    more: list[Raw] = field(default_factory=list)
    """Further documents, such as virtual sources."""
    root: str = "order"
    sources: list[str] = field(default_factory=lambda: ["order"])

    @property
    def out(self) -> Path:
        return self.place / "out"

    @property
    def uri(self) -> str:
        return f"file://{self.out}/"

    def write(self, source: str, day: int, rows: Any) -> Path:
        """One snapshot of a source: rows as dictionaries, or an Arrow table."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
        path = self.place / "sources" / source / f"2024-01-{day:02d}" / "part.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        if source not in self.sources:
            self.sources.append(source)
        return path

    def join(self, source: str, **settings: Any) -> None:
        """Join a source to the root by `id`."""
        self.others.append({"dataSource": source, "fieldName": source, **settings})
        if source not in self.sources:
            self.sources.append(source)

    def documents(self) -> list[Raw]:
        virtual = [raw["metadata"]["name"] for raw in self.more if raw["kind"] == "DataSource"]
        joined = [self.root, *(other["dataSource"] for other in self.others)]
        relationship = document(
            "DataRelationship",
            "id",
            {
                "representations": [
                    {
                        "dataSources": joined,
                        "joinKey": [
                            {
                                "fields": [{"fieldName": "id", "dataType": {"long": {}}}],
                                "castDataType": {"long": {}},
                            }
                        ],
                    }
                ]
            },
        )
        physical = [self._source(name) for name in self.sources if name not in virtual]
        return [*physical, *self.more, relationship, self._output()]

    def bundle(self) -> Bundle:
        raws = self.documents()
        resources = [KIND_BY_NAME[raw["kind"]].model.parse(raw) for raw in raws]
        return bundle_for("OutputDataset", OUTPUT, resources)

    def save(self, path: Path | None = None) -> Path:
        path = path or self.place / "model.yaml"
        path.write_text(yaml.safe_dump_all(self.documents()), "utf-8")
        return path

    def weave(
        self,
        spark: SparkSession,
        at: str = NOW,
        limit: int | None = None,
        reached: Callable[[CrashPoint], None] = pass_by,
        interruption: Interruption | None = None,
        emit: Callable[[Event], None] | None = None,
        lease: OpenLease | None = None,
        terms: LeaseTerms = TERMS,
        options: RunOptions = AS_DECLARED,
    ) -> Woven:
        """Run a real job; what it reports and what it emitted."""
        emitted: list[Event] = []

        def listen(event: Event) -> None:
            emitted.append(event)
            if emit is not None:
                emit(event)

        job = Job(
            now=parse_instant(at),
            clock=now,
            emit=listen,
            interruption=interruption or Interruption(),
            lease=lease,
            terms=terms,
            options=options if limit is None else replace(options, limit=limit),
            reached=reached,
        )
        return Woven(weave_output(spark, self.bundle(), job), emitted)

    def opened(self) -> Folder:
        return open_folder(open_store(self.uri, create=False))

    def state(self) -> FolderState:
        return self.opened().log.read()

    def live_days(self) -> list[int]:
        return [day_of(record.time) for record in self.state().snapshots]

    def data_files(self) -> set[str]:
        files = (path for path in (self.out / "data").rglob("*") if path.is_file())
        return {str(path.relative_to(self.out)) for path in files}

    def is_clean(self) -> bool:
        """Whether there is nothing in the folder but what is committed."""
        return self.data_files() == set(self.state().live_files) and not list(
            self.out.glob(".snaploom-tmp/*")
        )

    def _source(self, name: str) -> Raw:
        root = f"file://{self.place}/sources/{name}/"
        spec = {
            "format": "parquet",
            "sourceUriGlobs": [f"{root}*/*.parquet"],
            "sourceUriPrefix": f"{root}{{day:STRING}}/",
            "snapshot": {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}},
        }
        return document("DataSource", name, {"hdfsLike": spec})

    def _output(self) -> Raw:
        spec: Raw = {
            "dataModel": {
                "rootDataSource": {
                    "dataSource": self.root,
                    "snapshotFilter": {
                        "fromInterval": {
                            "intervalStartDate": START,
                            "intervalLength": {"day": 1},
                        }
                    },
                },
                "otherDataSources": self.others,
                "dataRelationships": [{"name": "id"}] if self.others else [],
            },
            "outputFolder": {"folderUri": self.uri, "snapshotFormat": {"hivePartitioned": {}}},
        }
        for path, value in self.folder.items():
            put(spec["outputFolder"], path, value)
        for path, value in self.spec.items():
            put(spec, path, value)
        return document("OutputDataset", OUTPUT, spec)


@dataclass(frozen=True)
class Woven:
    """What a job reported, and what it emitted on the way."""

    report: Report
    events: Sequence[Event]

    def events_of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def outcomes(self) -> Mapping[int, str]:
        """By day of January: PUBLISHED, or why not; failures in lower case."""
        found = {day_of(s.time): "PUBLISHED" for s in self.report.snapshots}
        found |= {day_of(s.time): s.reason.value for s in self.report.skipped}
        return found | {day_of(s.time): s.reason.value.lower() for s in self.report.failed}


def day_of(time: str | EpochNanos) -> int:
    nanos = parse_instant(time) if isinstance(time, str) else time
    return (nanos - parse_instant("2024-01-01T00:00:00Z")) // (86_400 * 10**9) + 1


def day(number: int) -> EpochNanos:
    return parse_instant(f"2024-01-{number:02d}T00:00:00Z")


def ids(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]
