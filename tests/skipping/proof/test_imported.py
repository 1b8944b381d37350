"""Metadata of the reference with its faults (rule S28), one by one, in every version.

Each fault is shown to be one: taken on trust, it loses rows. Compared with the files, it does not,
the file in question is read, and the others are skipped as before.
"""

import datetime as dt
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.skipping.onequalsoff import IndexOf
from support.skipping.proofcases import ProofCase
from support.skipping.proofmetadata import (
    FAULTS,
    VERSIONS,
    Fault,
    FileFacts,
    Kept,
    MetadataWriter,
    facts_of,
)
from support.skipping.prooftables import ProofTable
from support.skipping.xskipperfiles import JavaBlooms

from snaploom.errors import IndexNotPossible
from snaploom.skipping.lifecycle.interchange import ImportResult

pytestmark = pytest.mark.long

SQL_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


@dataclass(frozen=True)
class Imports:
    """Metadata about the column `a` of a case's files, written and imported."""

    case: ProofCase
    blooms: JavaBlooms

    def written(
        self,
        version: int,
        kind: str,
        data_type: str,
        fault: Fault | None = None,
        footer: dict[str, str] | None = None,
    ) -> "Imports":
        """Metadata with a fault about the first file."""
        table = ProofTable("", str(self.case.path), "parquet", {"a": data_type})
        facts = facts_of(self.case.spark, table)
        first = facts.files[0].path

        def chosen(_: IndexOf, file: FileFacts) -> Fault:
            return fault if fault is not None and file.path == first else no_fault

        writer = MetadataWriter(self.blooms, version, footer)
        writer.write(self.store, str(self.case.path), facts, [IndexOf(kind, ("a",))], chosen)
        return self

    @property
    def store(self) -> Path:
        return self.case.folder / "store"

    def imported(self, *, is_trusted: bool) -> ImportResult:
        return self.case.indexes.import_(self.case.subject, str(self.store), is_trusted=is_trusted)


def no_fault(kept: Kept, data_type: str) -> Kept:
    return kept


@pytest.fixture
def imports(case: ProofCase, blooms: JavaBlooms) -> Callable[..., Imports]:
    """Files with values of a type, for which metadata can be written.

    Their footers have no statistics: Spark believes those of other writers, and where they leave
    NaN out it loses rows by itself.
    """

    def of(kind: pa.DataType, *files: Sequence[object]) -> Imports:
        case.path.mkdir()
        for number, values in enumerate(files):
            table = pa.table({"a": pa.array(values, kind)})
            pq.write_table(table, case.path / f"f{number}.parquet", write_statistics=False)
        return Imports(case, blooms)

    return of


def day(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


def moment(micros: int) -> dt.datetime:
    return dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)


@dataclass(frozen=True)
class FaultCase:
    """A fault about the first of three files, and a condition that needs that file."""

    fault: str
    kind: str
    column: pa.DataType
    files: Sequence[Sequence[object]]
    needs_first: str
    needs_last: str
    versions: Sequence[int] = VERSIONS

    def __str__(self) -> str:
        return f"{self.fault}-{self.kind}"


INTS = [[1, 2, 7], [3, 4], [5, 6]]
TEXTS = [["abz", "abzz"], ["abc"], ["b"]]
ASTRAL = [["\uffff", "🎉"], ["\uffff"], ["b"]]
NANS = [[1.0, math.nan], [1.0, 2.0], [3.0]]
MOMENTS = [[moment(123_456)], [moment(5_000_000)], [moment(9_000_000)]]
DAYS = [[day("1500-03-01")], [day("1600-01-01")], [day("2024-01-01")]]
SINCE_1 = VERSIONS[1:]

FAULT_CASES = [
    FaultCase("NaN is hidden", "MIN_MAX", pa.float64(), NANS, "a > 5", "a = 3"),
    FaultCase("NaN is hidden", "VALUE_SET", pa.float64(), NANS, "a = double('NaN')", "a = 3"),
    FaultCase(
        "text in the order of UTF-16", "MIN_MAX", pa.string(), ASTRAL, "a = '🎉'", "a = 'b'"
    ),
    *(
        FaultCase("the greatest value is forgotten", kind, pa.int64(), INTS, "a = 7", "a = 6")
        for kind in ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")
    ),
    FaultCase("the least value is forgotten", "MIN_MAX", pa.int32(), INTS, "a <= 1", "a = 6"),
    *(
        FaultCase("NULL for a file without statistics", kind, pa.int32(), INTS, "a = 7", "a = 6")
        for kind in ("MIN_MAX", "VALUE_SET")
    ),
    FaultCase("text is cut", "MIN_MAX", pa.string(), TEXTS, "a = 'abzz'", "a = 'b'"),
    FaultCase(
        "moments in whole milliseconds", "MIN_MAX", pa.timestamp("us", "UTC"), MOMENTS,
        "a = timestamp'2024-01-01 00:00:00.123456'", "a = timestamp'2024-01-01 00:00:09'",
    ),
    *(
        FaultCase(
            "the old calendar", kind, pa.date32(), DAYS,
            "a = date'1500-03-01'", "a = date'2024-01-01'", SINCE_1,
        )
        for kind in ("MIN_MAX", "VALUE_SET")
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "version"),
    [
        (fault, fault.versions[number % len(fault.versions)])
        for number, fault in enumerate(FAULT_CASES)
    ]
    + [(FAULT_CASES[3], version) for version in VERSIONS if version != 3],
    ids=str,
)
def test_fault_loses_rows_on_trust_and_none_once_verified(imports, fault, version):
    made = imports(fault.column, *fault.files)
    made.written(version, fault.kind, SQL_TYPES[fault.column], FAULTS[fault.fault])
    made.imported(is_trusted=True)
    with pytest.raises(AssertionError):
        made.case.kept(fault.needs_first)
    made.case.indexes.drop(made.case.subject)
    done = made.imported(is_trusted=False)
    assert [Path(path).name for path in done.imported.rejected] == ["f0.parquet"]
    assert made.case.kept(fault.needs_first) == 1
    assert made.case.kept(fault.needs_last) == 2


@pytest.mark.parametrize(
    ("kind", "version"),
    [("MIN_MAX", 0), ("MIN_MAX", 4), ("VALUE_SET", 0), ("VALUE_SET", 1), ("VALUE_SET", 3)],
)
def test_zeros_of_the_reference_are_one_value(imports, kind, version):
    made = imports(pa.float64(), [-0.0], [0.0], [1.0]).written(version, kind, "double")
    made.imported(is_trusted=True)
    assert made.case.kept("a = 0.0D") == 2
    assert made.case.kept("a IN (-0.0D, 7)") == 2


@pytest.mark.parametrize(
    ("version", "footer"),
    [
        (1, {"org.apache.spark.version": "2.4.8"}),
        (2, {}),
        (3, {"org.apache.spark.legacyDateTime": ""}),
        (4, {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}),
    ],
    ids=["Spark 2", "untold", "legacy", "legacy of a new Spark"],
)
def test_old_days_of_an_old_spark_are_unknown_even_on_trust(imports, version, footer):
    made = imports(pa.date32(), *DAYS)
    made.written(version, "MIN_MAX", "date", FAULTS["the old calendar"], footer)
    made.imported(is_trusted=True)
    assert made.case.seen("a = date'1500-03-01'")[1]
    assert made.case.kept("a = date'1600-01-01'") <= 2


@pytest.mark.parametrize("version", [0, 1, 4])
def test_file_rewritten_within_its_millisecond_is_found_out(imports, version):
    made = imports(pa.int32(), [1], [2], [3]).written(version, "MIN_MAX", "int")
    file = made.case.files[0]
    before = file.stat()
    made.case.write({"a": pa.array([9], pa.int32())})
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    done = made.imported(is_trusted=False)
    assert [Path(path).name for path in done.imported.rejected] == ["f0.parquet"]
    assert made.case.seen("a = 9") == (1, ["Row(a=9)"])


@pytest.mark.parametrize(
    ("version", "is_trusted"), [(0, True), (1, False), (2, True), (3, False), (4, True)]
)
def test_files_that_changed_since_are_read(imports, version, is_trusted):
    made = imports(pa.int32(), [1], [2], [3]).written(version, "VALUE_SET", "int")
    os.utime(made.case.files[0], (1, 1))
    done = made.imported(is_trusted=is_trusted)
    assert (done.imported.unmatched, done.imported.not_covered) == (1, 1)
    assert made.case.kept("a = 3") == 2
    made.case.refresh()
    assert made.case.kept("a = 3") == 1


def test_metadata_of_another_bucket_with_the_same_names_is_found_out(imports):
    """Names hold no bucket: those of two buckets differ in nothing when the times are the same."""
    made = imports(pa.int32(), [1], [2], [3]).written(4, "MIN_MAX", "int")
    times = [file.stat().st_mtime_ns for file in made.case.files]
    made.case.write(*({"a": pa.array([value], pa.int32())} for value in (7, 8, 9)))
    for file, time in zip(made.case.files, times, strict=True):
        os.utime(file, ns=(time, time))
    with pytest.raises(IndexNotPossible, match="none of the 3 rows") as refused:
        made.imported(is_trusted=False)
    assert "3 rows contradict their files" in str(refused.value.found)
    assert made.case.seen("a = 8") == (3, ["Row(a=8)"])


@pytest.mark.parametrize("version", [0, 4])
def test_values_of_another_type_than_the_column_are_not_taken(imports, version):
    made = imports(pa.int32(), [1], [2], [3]).written(version, "MIN_MAX", "int")
    made.case.write(*({"a": pa.array([value], pa.string())} for value in ("1", "10", "9")))
    with pytest.raises(IndexNotPossible, match="none of the indexes"):
        made.imported(is_trusted=True)
