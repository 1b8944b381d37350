"""Imports: what counts only after it was verified, and what the user vouches for."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from support.skipping.xskipperfiles import (
    a_definition,
    array_of,
    bloom_of_longs,
    field,
    identity,
    index_metadata,
    index_of,
    java_bloom,
    java_type,
    struct_of,
    write_part,
)

from snaploom.errors import IndexNotPossible
from snaploom.files.local import LocalObjectStore
from snaploom.plugins.xskipper.imports import Verify, follows, import_rows, plan_import
from snaploom.plugins.xskipper.storefiles import StoredMetadata, XskipperDirectory
from snaploom.skipping.core.definition import IndexDefinition, Term, column_term
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.core.predicates import Comparison, Operator
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.lifecycle.interchange import Imported

TYPES = {"x": "int", "s": "string", "k": "bigint"}
BLOOM = bloom_of_longs([1, 2], items=100)


def column(name: str) -> Term:
    if name not in TYPES:
        raise IndexNotPossible(f"there is no column {name}")
    return column_term((name,), TYPES[name])


def stored(folder: Path) -> StoredMetadata:
    """A store about files a to d: bounds, a set and a bloom; d has no values."""
    params = {"io.xskipper.index.bloom.fpp": "0.01", "io.xskipper.index.bloom.ndv": "100"}
    bounds = pa.struct([("min", pa.int32()), ("max", pa.int32())])
    write_part(
        folder,
        "part-0.parquet",
        [
            field("obj_name", "string", {"version": 4, "tableIdentifier": "/data/t"}),
            field("x", struct_of("integer"), index_metadata("minmax", ["x"])),
            field("s", array_of("string"), index_metadata("valuelist", ["s"])),
            field("k", java_type("B"), index_metadata("bloomfilter", ["k"], params=params)),
            field("gone", struct_of("integer"), index_metadata("minmax", ["gone"])),
            field("k2", struct_of("integer"), index_metadata("minmax", ["k"])),
        ],
        {
            "obj_name": pa.array([f"/data/t/{name}#1" for name in "abcd"]),
            "x": pa.array([{"min": 1, "max": 5}] * 3 + [None], bounds),
            "s": pa.array([["p", "q"]] * 3 + [None]),
            "k": pa.array([java_bloom(BLOOM)] * 4, pa.binary()),
            "gone": pa.array([None] * 4, bounds),
            "k2": pa.array([None] * 4, bounds),
        },
    )
    return XskipperDirectory(LocalObjectStore(folder, create=False)).read()


def listing(names: str, modified: int = 1) -> pa.Table:
    return pa.table(identity([f"file:/data/t/{name}" for name in names], [modified] * len(names)))


def imported(folder: Path, files: pa.Table, verify: Verify | None) -> Imported:
    metadata = stored(folder)
    plan = plan_import(metadata, column, lambda number: f"i{number + 1}")
    return import_rows(metadata, plan, files, verify)


def rebuilt(
    files: pa.Table,
    minimum: int = 1,
    words: Sequence[int] = (1,),
    texts: Sequence[bytes] = (b"p",),
    items: int = 100,
) -> pa.Table:
    """What the files themselves contain."""
    count = files.num_rows
    return pa.table(
        {
            **{name: files[name] for name in files.column_names},
            "i1.values": [5] * count,
            "i1.nulls": [0] * count,
            "i1.min": pa.array([minimum] * count, pa.int32()),
            "i1.max": pa.array([4] * count, pa.int32()),
            "i2.values": [5] * count,
            "i2.nulls": [0] * count,
            "i2.set": pa.array([list(texts)] * count, pa.list_(pa.large_binary())),
            "i3.values": [5] * count,
            "i3.nulls": [0] * count,
            "i3.words": pa.array([bloom_of_longs(words, items=items)] * count, pa.large_binary()),
        }
    )


def test_plan_takes_what_there_is_and_names_the_rest(tmp_path: Path) -> None:
    plan = plan_import(stored(tmp_path), column, lambda number: f"i{number + 1}")
    assert [(position, each.label) for position, each in plan.indexes] == [
        (0, "MIN_MAX(x)"),
        (1, "VALUE_SET(s)"),
        (2, "BLOOM_FILTER(k)"),
    ]
    assert dict(plan.indexes[2][1].parameters) == {"fpp": "0.01", "ndv": "100", "items": "VALUES"}
    assert plan.refused == (
        "minmax(gone): there is no column gone",
        "minmax(k): it was made of int, and the column is bigint now",
    )
    for _, each in plan.indexes:
        index_type(each.type).check(each)


def test_trusted_rows_are_taken_for_files_as_they_were(tmp_path: Path) -> None:
    files = pa.concat_tables([listing("ad"), listing("b", modified=2), listing("e")])
    found = imported(tmp_path, files, None)
    assert found.rows["path"].to_pylist() == ["file:/data/t/a", "file:/data/t/d"]
    assert found.rows["i1.values"].to_pylist() == [1, 0]
    assert found.rows["i1.nulls"].to_pylist() == [None, None]
    assert found.rows["i2.set"].to_pylist() == [[b"p", b"q"], []]
    assert found.rows["length"].to_pylist() == [10, 10]
    assert (found.unmatched, found.not_covered) == (2, 2)


def test_trusted_rows_prune_as_stored(tmp_path: Path) -> None:
    found = imported(tmp_path, listing("ab"), None)
    table = FileTable.of(found.rows)
    for definition, hit, miss in zip(found.indexes, (5, b"q", 2), (6, b"r", 3), strict=True):
        for value, keeps in ((hit, True), (miss, False)):
            leaf = Comparison(definition.term, Operator.EQ, value)
            mask = index_type(definition.type).may_match(definition, table, leaf)
            assert mask.tolist() == [keeps, keeps]


def test_verified_rows_are_those_of_the_files(tmp_path: Path) -> None:
    found = imported(tmp_path, listing("abc"), lambda files, _: [rebuilt(files)])
    assert found.rejected == ()
    assert found.rows["i1.values"].to_pylist() == [5, 5, 5]
    assert found.rows["i1.max"].to_pylist() == [4, 4, 4]


def test_a_filter_of_another_size_contradicts_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path, listing("a"), lambda files, _: [rebuilt(files, items=500)])
    assert found.rejected == ()
    assert found.rows["i3.words"].to_pylist() == [bloom_of_longs([1], items=500)]


@pytest.mark.parametrize(
    "real",
    [
        pytest.param({"minimum": 0}, id="a value below the bounds"),
        pytest.param({"texts": (b"p", b"z")}, id="a value that is not in the set"),
        pytest.param({"words": (1, 99)}, id="a bit that is not in the bloom"),
    ],
)
def test_row_that_does_not_follow_from_its_file_is_rejected(tmp_path, real):
    def verify(files: pa.Table, _: Sequence[IndexDefinition]) -> list[pa.Table]:
        return [rebuilt(files.slice(0, 1)), rebuilt(files.slice(1), **real)]  # type: ignore[arg-type]

    found = imported(tmp_path, listing("ab"), verify)
    assert found.rejected == ("file:/data/t/b",)
    assert found.rows["path"].to_pylist() == ["file:/data/t/a"]


def test_null_of_the_store_for_a_file_with_values_is_rejected(tmp_path: Path) -> None:
    found = imported(tmp_path, listing("d"), lambda files, _: [rebuilt(files)])
    assert found.rejected == ("file:/data/t/d",)


def test_file_that_cannot_be_verified_is_left_out(tmp_path: Path) -> None:
    found = imported(tmp_path, listing("ab"), lambda files, _: [rebuilt(files.slice(0, 1))])
    assert found.rows["path"].to_pylist() == ["file:/data/t/a"]


@pytest.mark.parametrize(
    ("low", "high", "sound"),
    [
        ("\ue000", "🎉", True),
        ("\uffff", "🎉", True),
        ("🎉", "\uffff", False),
    ],
)
def test_bounds_in_the_order_of_utf_16_are_rejected(low: str, high: str, sound: bool) -> None:
    """Java's order puts U+1F389 before U+E000; bytes put it after."""
    definition = index_of("i1", "MIN_MAX", "s", "string")
    theirs = {"i1.values": 1, "i1.min": low.encode(), "i1.max": high.encode()}
    real = {"i1.values": 2, "i1.min": "\uffff".encode(), "i1.max": "🎉".encode()}
    assert follows(definition, theirs, real) is sound


@pytest.mark.parametrize(("maximum", "sound"), [(float("inf"), False), (float("nan"), True)])
def test_bounds_that_forget_nan_are_rejected(maximum: float, sound: bool) -> None:
    definition = index_of("i1", "MIN_MAX", "d", "double")
    theirs = {"i1.values": 1, "i1.min": -1.0, "i1.max": maximum}
    real = {"i1.values": 2, "i1.min": 1.0, "i1.max": float("nan")}
    assert follows(definition, theirs, real) is sound


def test_export_of_an_import_reads_as_the_original(tmp_path: Path) -> None:
    found = imported(tmp_path / "theirs", listing("abcd"), None)
    ours = XskipperDirectory(LocalObjectStore(tmp_path / "ours", create=True))
    ours.write([found.rows], a_definition(*found.indexes))
    again = ours.read()
    original = stored(tmp_path / "theirs").rows
    for name in ("path", "modified", "0.min", "0.max", "1.set", "2.filter"):
        assert again.rows[name].to_pylist() == original[name].to_pylist()
