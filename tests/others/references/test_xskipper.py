"""What Xskipper writes we read, what we write Xskipper reads; both skip the same files."""

import base64
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.servers.keyservices import MemoryKeyService
from support.servers.references import Peer
from support.skipping.indexeddata import last

from snaploom.plugins.xskipper.javastream import read_bloom, write_bloom
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.spark.interfaces.enable import enable
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import PathName

FILES = 4
ROWS = """
    cast(id + {n} * 100 as int) i, id + {n} * 100 l, cast(id as byte) b, cast(id + {n} as short) s,
    cast(id + {n} * 100 as float) f, cast(id + {n} * 100 as double) d,
    cast(id + {n} * 10 + 0.25 as decimal(12,2)) m, cast(id + {n} * 10 as decimal(30,5)) mm,
    concat('näm🎉', {n}, '-', id) t, id % 2 = {n} % 2 or {n} > 1 o,
    date'1500-01-01' + cast(id + {n} * 100 as int) day,
    timestamp'1850-01-01 00:00:00.123456' + make_interval({n} * 20, 0, 0, 0, 0, 0, id) ts,
    cast(concat('x', {n}, id) as binary) bin,
    struct(id + {n} * 100 as k, struct(concat('z', {n}) as Q) as r) st,
    id + {n} * 100 a_b, concat('h', {n}) `h#x`, if({n} = 2, null, cast(id as int)) nul
"""
BOUNDED = ["i", "l", "b", "s", "f", "d", "m", "mm", "t", "o", "day", "ts", "st.k", "a_b", "h#x"]
LISTED = [*BOUNDED, "bin", "nul"]
FILTERED = ["i", "l", "b", "s", "t", "st.r.Q", "nul", "h#x"]
SMALL = {"io.xskipper.index.bloom.fpp": "0.05", "io.xskipper.index.bloom.ndv": "50"}
CONDITIONS = [
    "i = 105",
    "l > 299",
    "f < 20",
    "m = 25.25",
    "mm >= 41 and s in (3, 4)",
    "t = 'näm🎉2-3'",
    "day < date'1500-04-12'",
    "ts = timestamp'1870-01-01 00:00:05.123456'",
    "bin = cast('x03' as binary)",
    "st.k = 305 or a_b = 7",
    "st.r.Q = 'z2'",
    "`h#x` in ('h0', 'h3')",
    "nul = 4",
    "p1 is null and i > 0",
    "i <> 7 and t = 'nothing'",
]
KEYS = {"footers": b"0123456789abcdef", "columns": b"fedcba9876543210"}


@pytest.fixture(scope="module")
def data(xskipper: Peer, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("lake") / "data")
    for number in range(FILES):
        add(xskipper, path, number)
    return path


@pytest.fixture(scope="module")
def written(xskipper: Peer, data: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Everything that Xskipper can index of it."""
    location = str(tmp_path_factory.mktemp("store") / "metadata")
    indexes = [["minmax", column, {}, ""] for column in BOUNDED]
    indexes += [["valuelist", column, {}, ""] for column in LISTED]
    indexes += [["bloomfilter", column, SMALL, ""] for column in FILTERED]
    (built,) = xskipper.ask("build", path=data, location=location, indexes=indexes)
    assert (built["status"], built["new_entries_added"]) == ("SUCCESS", FILES)
    return location


def add(xskipper: Peer, path: str, number: int) -> None:
    named = f"if({number} = 1, null, {number}) p1, concat('p ä/%', {number}) `P_2`"
    text = f"select /*+ coalesce(1) */ {ROWS.format(n=number)}, {named} from range(0, 20)"
    xskipper.ask("write", path=path, text=text, partitions=["p1", "P_2"])


def ours(spark: SparkSession, path: str, condition: str) -> tuple[list[int], int]:
    found = spark.read.parquet(path).where(condition).select("i").collect()
    return sorted(row.i for row in found), last(spark).files - last(spark).kept_files


def theirs(xskipper: Peer, path: str, condition: str, **store: str) -> tuple[list[int], int]:
    answer = xskipper.ask("query", path=path, where=condition, column="i", **store)
    return answer["values"], answer["skipped"]


@pytest.fixture(scope="module")
def known(xskipper: Peer, data: str, written: str) -> dict[str, tuple[list[int], int]]:
    """What is right, by a Spark that skips nothing; how much Xskipper skips by its own store."""
    found = {}
    for condition in CONDITIONS:
        right, _ = theirs(xskipper, data, condition)
        values, skipped = theirs(xskipper, data, condition, location=written)
        assert values == right
        found[condition] = (right, skipped)
    return found


def lines(xskipper: Peer, path: str, location: str) -> dict[str, str]:
    described = xskipper.ask("describe", path=path, location=location)
    return {row["Data Skipping Index Stats"]: row[path] for row in described}


@pytest.mark.parametrize("is_trusted", [False, True])
def test_what_xskipper_wrote_is_imported_and_skips_as_much(
    spark: SparkSession,
    xskipper: Peer,
    data: str,
    written: str,
    known: dict[str, tuple[list[int], int]],
    tmp_path: Path,
    is_trusted: bool,
) -> None:
    indexes = SkippingIndexes(spark, str(tmp_path))
    result = indexes.import_(PathName("parquet", data, ()), written, is_trusted=is_trusted)
    found = result.imported
    assert (found.rejected, found.unmatched, found.not_covered, found.refused) == ((), 0, 0, ())
    assert len(found.indexes) == len(BOUNDED) + len(LISTED) + len(FILTERED)
    enable(spark, str(tmp_path))
    for condition, (right, skipped) in known.items():
        values, skipped_here = ours(spark, data, condition)
        assert values == right, condition
        assert skipped_here >= skipped, condition


def test_streams_of_the_real_class_come_back_byte_for_byte(written: str) -> None:
    # What differs is how each Spark describes its own class: 3.5, which runs here, and 3.0.
    described, as_of_old = bytes.fromhex("a6dea6a48cba1ff6"), bytes.fromhex("8303774076ceabf6")
    table = pq.ParquetDataset(written).read()
    names = [name for name in table.column_names if "_bloomfilter_" in name]
    streams = [stream for name in names for stream in table[name].to_pylist()]
    assert len(streams) == len(FILTERED) * FILES
    expected = [stream.replace(described, as_of_old) for stream in streams]
    assert [write_bloom(read_bloom(stream)) for stream in streams] == expected


def everything(spark: SparkSession, data: str, location: str) -> IndexBuilder:
    building = skipping_index(spark).on_path(data).add_partitions("p1", "P_2")
    building = building.add_min_max(*map(quoted, BOUNDED)).add_value_set(*map(quoted, LISTED))
    blooms = {"ndv": 50, "fpp": 0.05, "items": "VALUES"}
    return building.add_bloom_filter(*map(quoted, FILTERED), **blooms).stored(location, "XSKIPPER")


def quoted(column: str) -> str:
    return f"`{column}`" if "#" in column else column


def test_what_we_write_xskipper_describes_refreshes_and_skips_by(
    spark: SparkSession,
    xskipper: Peer,
    data: str,
    known: dict[str, tuple[list[int], int]],
    tmp_path: Path,
) -> None:
    indexes, subject = SkippingIndexes(spark, str(tmp_path / "ours")), PathName("parquet", data, ())
    everything(spark, data, str(tmp_path / "ours")).create()
    indexes.refresh(subject)
    exported = str(tmp_path / "exported")
    assert indexes.export(subject, exported).left_out == 0
    status = lines(xskipper, data, exported)
    assert (status["Status"], status["Total objects indexed"]) == ("Up to date", str(FILES))
    for condition, before in known.items():
        assert theirs(xskipper, data, condition, location=exported) == before, condition


def test_a_store_is_carried_on_in_turn(spark: SparkSession, xskipper: Peer, tmp_path: Path) -> None:
    data, base = str(tmp_path / "data"), str(tmp_path / "indexes")
    add(xskipper, data, 0)
    indexes, subject = SkippingIndexes(spark, base), PathName("parquet", data, ())
    building = skipping_index(spark).on_path(data).add_min_max("i").add_value_set("t")
    building.add_bloom_filter("l", items="VALUES").stored(base, "XSKIPPER").create()
    indexes.refresh(subject)
    add(xskipper, data, 3)
    below = {"location": base, "kind": "EXPLICIT_BASE_PATH_LOCATION"}
    (refreshed,) = xskipper.ask("refresh", path=data, **below)
    assert (refreshed["status"], refreshed["new_entries_added"]) == ("SUCCESS", 1)
    (store,) = [path.parent for path in Path(base).glob("*/part-*.parquet")][:1]
    result = SkippingIndexes(spark, str(tmp_path / "again")).import_(subject, str(store))
    assert (result.imported.rows.num_rows, result.imported.rejected) == (2, ())
    indexes.refresh(subject)
    (again,) = xskipper.ask("refresh", path=data, **below)
    assert (again["status"], again["new_entries_added"]) == ("SUCCESS", 0)
    assert theirs(xskipper, data, "i = 305", **below) == ([305], 1)


@pytest.mark.parametrize("is_plain", [False, True])
def test_encrypted_stores_are_read_on_both_sides(spark, xskipper, data, tmp_path, is_plain):
    keys = ParquetKeys(MemoryKeyService(KEYS))
    xskipper.ask("keys", keys={k: base64.b64encode(v).decode() for k, v in KEYS.items()})
    their_store, subject = str(tmp_path / "theirs"), PathName("parquet", data, ())
    indexes = [["minmax", "i", {}, "columns"], ["valuelist", "t", {}, "footers"]]
    indexes += [["minmax", "st.k", {}, ""], ["bloomfilter", "l", SMALL, "columns"]]
    asked = {"footer": "footers", "plaintext": is_plain, "indexes": indexes}
    (built,) = xskipper.ask("build", path=data, location=their_store, **asked)
    assert built["status"] == "SUCCESS"
    base = str(tmp_path / "imported")
    enable(spark, base, keys=keys)
    result = SkippingIndexes(spark, base).import_(subject, their_store)
    assert len(result.imported.indexes) == 4
    assert result.imported.rejected == ()
    assert ours(spark, data, "i = 105 and l = 105") == ([105], FILES - 1)
    exported = str(tmp_path / "exported")
    SkippingIndexes(spark, base).export(subject, exported)
    magic = {path.read_bytes()[:4] for path in Path(exported).glob("*.parquet")}
    assert magic == ({b"PAR1"} if is_plain else {b"PARE"})
    assert lines(xskipper, data, exported)["Status"] == "Up to date"
    for condition, value in (("t = 'näm🎉2-3'", 203), ("l = 305", 305)):
        answer = theirs(xskipper, data, condition, location=exported)
        assert answer == ([value], FILES - 1)
