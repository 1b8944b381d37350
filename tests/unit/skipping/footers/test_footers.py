"""What footers of several writers prove, against the data themselves."""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.skipping.spark.builds.footers import FooterReader, FooterTerm

TIMES = [datetime(2020, 1, 2, 3, 4, 5, 678901, UTC), datetime(1999, 1, 1, tzinfo=UTC)]
MICROS = (915_148_800_000_000, 1_577_934_245_678_901)

PROVED: Mapping[str, tuple[str, pa.DataType, list[object], object, object]] = {
    "bool": ("boolean", pa.bool_(), [True, False], False, True),
    "int8": ("tinyint", pa.int8(), [5, -128], -128, 5),
    "int16": ("smallint", pa.int16(), [5, -300], -300, 5),
    "int32": ("int", pa.int32(), [5, -70000], -70000, 5),
    "int64": ("bigint", pa.int64(), [1 << 40, -5], -5, 1 << 40),
    "date": ("date", pa.date32(), [date(2020, 1, 1), date(1969, 12, 31)], -1, 18262),
    "micros": ("timestamp", pa.timestamp("us", "UTC"), TIMES, *MICROS),
    "wall": ("timestamp_ntz", pa.timestamp("us"), [t.replace(tzinfo=None) for t in TIMES], *MICROS),
    "text": (
        "string",
        pa.string(),
        ["zoë", "\U0001f600", "\uffee"],
        "zoë".encode(),
        "\U0001f600".encode(),
    ),
    "bytes": ("binary", pa.binary(), [b"\x7f", b"\x80", b""], b"", b"\x80"),
    "small": (
        "decimal(9,2)",
        pa.decimal128(9, 2),
        [Decimal("-1.25"), Decimal("9.00")],
        Decimal("-1.25"),
        Decimal("9.00"),
    ),
    "large": (
        "decimal(38,10)",
        pa.decimal128(38, 10),
        [Decimal("-1E+20"), Decimal("12345678901234567890.0123456789")],
        Decimal("-1E+20"),
        Decimal("12345678901234567890.0123456789"),
    ),
}

NOT_PROVED: Mapping[str, tuple[str, pa.DataType, list[object]]] = {
    "float": ("float", pa.float32(), [1.0, 2.0]),
    "double": ("double", pa.float64(), [1.0, float("nan")]),
    "unsigned": ("bigint", pa.uint32(), [1, 2]),
    "unsigned bytes": ("smallint", pa.uint8(), [1, 255]),
    "widened": ("bigint", pa.int32(), [1, 2]),
    "narrowed": ("int", pa.int64(), [1, 2]),
    "other scale": ("decimal(9,1)", pa.decimal128(9, 2), [Decimal("1.00")]),
    "other precision": ("decimal(10,2)", pa.decimal128(9, 2), [Decimal("1.00")]),
    "millis": ("timestamp", pa.timestamp("ms", "UTC"), TIMES[1:]),
    "nanos": ("timestamp", pa.timestamp("ns", "UTC"), TIMES),
    "wall as instant": ("timestamp", pa.timestamp("us"), [TIMES[0].replace(tzinfo=None)]),
    "instant as wall": ("timestamp_ntz", pa.timestamp("us", "UTC"), TIMES),
    "text as bytes": ("binary", pa.string(), ["a"]),
    "bytes as text": ("string", pa.binary(), [b"a"]),
    "before 1582": ("date", pa.date32(), [date(1500, 1, 1)]),
    "before 1900": ("timestamp", pa.timestamp("us", "UTC"), [datetime(1850, 1, 1, tzinfo=UTC)]),
}


class Proved(NamedTuple):
    """What one footer proves about a term."""

    values: int
    nulls: int
    minimum: object
    maximum: object


class Footer(NamedTuple):
    rows: int | None
    columns: tuple[Proved | None, ...]
    length: int
    zoned: bool
    failure: str | None


def footers_of(reader: FooterReader, names: Sequence[str]) -> list[Footer]:
    found = reader.read_local(names)
    rows = []
    for place, facts in enumerate(found.facts.to_pylist()):
        columns = [found.slice(place, 1).column(number) for number in range(len(reader.terms))]
        proved = tuple(
            Proved(*(part[0].as_py() for part in vars(column).values()))
            if column.values[0].is_valid
            else None
            for column in columns
        )
        facts_of_file = (facts[name] for name in ("length", "zoned", "failure"))
        rows.append(Footer(facts["rows"], proved, *facts_of_file))
    return rows


def footer(path: Path, *terms: FooterTerm, is_case_sensitive: bool = False) -> Footer:
    (found,) = footers_of(FooterReader(terms, is_case_sensitive), [str(path)])
    return found


def written(path: Path, values: pa.Array, **options: object) -> Path:
    pq.write_table(pa.table({"c": values}), path, **options)
    return path


def about(path: Path, data_type: str, *names: str) -> Proved | None:
    return footer(path, FooterTerm(names or ("c",), data_type)).columns[0]


@pytest.mark.parametrize("case", PROVED)
def test_exact_types_are_proved(case: str, tmp_path: Path) -> None:
    data_type, kind, values, minimum, maximum = PROVED[case]
    path = written(tmp_path / "f", pa.array([*values, None], kind))
    assert about(path, data_type) == Proved(len(values), 1, minimum, maximum)


@pytest.mark.parametrize("case", NOT_PROVED)
def test_bounds_of_other_types_are_not_proved(case: str, tmp_path: Path) -> None:
    data_type, kind, values = NOT_PROVED[case]
    found = about(written(tmp_path / "f", pa.array(values, kind)), data_type)
    assert found is None or (found.minimum, found.maximum) == (None, None)


def test_int96_is_not_proved(tmp_path: Path) -> None:
    values = pa.array(TIMES, pa.timestamp("us", "UTC"))
    path = written(tmp_path / "f", values, use_deprecated_int96_timestamps=True)
    assert about(path, "timestamp") is None


@pytest.mark.parametrize(
    ("notes", "is_proved"),
    [
        ({"org.apache.spark.version": "4.3.0"}, True),
        ({"org.apache.spark.version": "4.3.0", "org.apache.spark.legacyDateTime": ""}, False),
        ({"org.apache.spark.version": "2.4.8"}, False),
        ({}, False),
    ],
)
def test_old_dates_are_proved_only_where_spark_keeps_them(notes, is_proved, tmp_path):
    table = pa.table({"c": pa.array([date(1500, 1, 1)])}).replace_schema_metadata(notes)
    pq.write_table(table, tmp_path / "f")
    found = about(tmp_path / "f", "date")
    assert (found.minimum is not None) is is_proved


def test_row_groups_are_merged(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([3, 4, None, None, 1, 2]), row_group_size=2)
    assert about(path, "bigint") == Proved(4, 2, 1, 4)


def test_nothing_but_nulls_is_proved(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([None, None], pa.float64()))
    assert about(path, "double") == Proved(0, 2, None, None)


def test_no_rows_are_proved(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([], pa.int64()))
    assert about(path, "bigint") == Proved(0, 0, None, None)


def test_without_statistics_nothing_is_proved(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([1, 2]), write_statistics=False)
    assert about(path, "bigint") is None


def test_a_missing_column_is_null_in_every_row(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([1, 2]))
    assert about(path, "int", "other") == Proved(0, 2, None, None)


def test_a_missing_column_with_a_default_is_not_proved(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([1, 2]))
    assert footer(path, FooterTerm(("other",), "int", has_default=True)).columns == (None,)


def test_names_are_matched_as_spark_does(tmp_path: Path) -> None:
    pq.write_table(pa.table({"Name": [1]}), tmp_path / "f")
    term = FooterTerm(("nAME",), "bigint")
    assert footer(tmp_path / "f", term).columns == (Proved(1, 0, 1, 1),)
    sensitive = footer(tmp_path / "f", term, is_case_sensitive=True)
    assert sensitive.columns == (Proved(0, 1, None, None),)


def test_names_that_differ_by_case_only_are_not_proved(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "A": [2]}), tmp_path / "f")
    assert about(tmp_path / "f", "bigint", "a") is None


def test_nested_fields_count_missing_structs_as_null(tmp_path: Path) -> None:
    rows = [{"b": {"c": 5}}, {"b": None}, None, {"b": {"c": None}}]
    pq.write_table(pa.table({"a": rows}), tmp_path / "f")
    assert about(tmp_path / "f", "bigint", "a", "b", "c") == Proved(1, 3, 5, 5)


def test_a_dot_in_a_name_is_no_nested_field(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a.b": [1]}), tmp_path / "f")
    assert about(tmp_path / "f", "bigint", "a.b") == Proved(1, 0, 1, 1)
    assert about(tmp_path / "f", "bigint", "a", "b") == Proved(0, 1, None, None)


def test_a_dotted_name_beside_its_nested_twin_is_not_proved(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a.b": [1], "a": [{"b": 2}]}), tmp_path / "f")
    assert about(tmp_path / "f", "bigint", "a.b") is None


def test_lists_are_not_proved(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([[1], [2]]))
    assert about(path, "bigint", "c", "list", "element") is None


def test_long_text_is_proved_only_where_it_is_never_cut(tmp_path: Path) -> None:
    written(tmp_path / "arrow", pa.array(["x" * 64]))
    duckdb.sql(f"COPY (SELECT repeat('x', 64) AS c) TO '{tmp_path}/duck' (FORMAT parquet)")
    arrow, duck = about(tmp_path / "arrow", "string"), about(tmp_path / "duck", "string")
    assert arrow == Proved(1, 0, b"x" * 64, b"x" * 64)
    assert duck == Proved(1, 0, None, None)


def test_duckdb_agrees_with_its_own_footers(tmp_path: Path) -> None:
    query = """SELECT i::INT AS i, i::BIGINT AS l, 'v' || i AS t, (i / 4)::DECIMAL(12, 3) AS d,
        DATE '2020-01-01' + i::INT AS day, nullif(i % 3, 0)::SMALLINT AS s FROM range(1000) r(i)"""
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/f' (FORMAT parquet, ROW_GROUP_SIZE 300)")
    types = {"i": "int", "l": "bigint", "t": "string", "d": "decimal(12,3)", "s": "smallint"}
    found = footer(tmp_path / "f", *(FooterTerm((name,), kind) for name, kind in types.items()))
    for name, column in zip(types, found.columns, strict=True):
        counts = f"count({name}), count(*) - count({name}), min({name}), max({name})"
        (expected,) = duckdb.sql(f"SELECT {counts} FROM read_parquet('{tmp_path}/f')").fetchall()
        bounds = [
            b.decode() if isinstance(b, bytes) else b for b in (column.minimum, column.maximum)
        ]
        assert (column.values, column.nulls, *bounds) == expected


def test_an_unknown_writer_proves_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([1, 2]))
    content = path.read_bytes().replace(b"parquet-cpp-arrow version", b"parquet-cpp-other version")
    path.write_bytes(content)
    assert about(path, "bigint") is None


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100, b"PAR1" + b"\xff" * 8 + b"PAR1"])
def test_what_is_no_parquet_has_a_reason(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(content)
    found = footer(tmp_path / "f", FooterTerm(("c",), "int"))
    assert found.rows is None
    assert found.failure


def test_only_the_footer_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array(range(100_000)))
    found = footer(path, FooterTerm(("c",), "bigint"))
    size = int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert found.length == size + 16
    assert found.rows == 100_000


SHAPES: list[tuple[pa.Table, dict[str, object]]] = [
    (pa.table({"c": [1, 2]}), {}),
    (pa.table({"c": [7, None]}), {}),
    (pa.table({"C": [1], "c": [2]}), {}),
    (pa.table({"a": [{"c": 1}]}), {}),
    (pa.table({"b": [{"c": 2}]}), {}),
    (pa.table({"c": pa.array([3], pa.int32())}), {}),
    (pa.table({"c": [4]}, metadata={"org.apache.spark.version": "2.4.0"}), {}),
    (pa.table({"c": [4]}), {"store_schema": False}),
    (pa.table({"other": [5]}), {}),
]
"""Tables whose footers are alike in part: names of leaves, schemas, or all but a note."""


@given(order=st.lists(st.sampled_from(range(len(SHAPES))), min_size=1, max_size=40))
def test_a_footer_proves_the_same_among_others_as_by_itself(order: list[int]) -> None:
    terms = (FooterTerm(("c",), "bigint"), FooterTerm(("b", "c"), "bigint"))
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{place}" for place in range(len(SHAPES))]
        for name, (table, options) in zip(names, SHAPES, strict=True):
            pq.write_table(table, name, **options)
        reader = FooterReader(terms, is_case_sensitive=False)
        single = [footers_of(reader, [name])[0] for name in names]
        among = footers_of(reader, [names[place] for place in order])
        assert among == [single[place] for place in order]


def test_files_of_one_schema_are_parsed_and_looked_through_together(tmp_path, monkeypatch):
    looked: list[int] = []
    of = FooterReader.leaves
    monkeypatch.setattr(
        FooterReader,
        "leaves",
        lambda self, found: looked.append(found.num_row_groups) or of(self, found),
    )
    names = [str(written(tmp_path / str(number), pa.array([number]))) for number in range(40)]
    reader = FooterReader((FooterTerm(("c",), "bigint"),), is_case_sensitive=False)
    found = footers_of(reader, names)
    assert [each.columns for each in found] == [(Proved(1, 0, n, n),) for n in range(40)]
    assert looked == [1, 2 * 39]  # one by itself, and the others each with one of ours
