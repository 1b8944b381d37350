"""Rules S1 to S22 by number, end to end: without each of them some system has lost rows.

Every case is shown to skip where that is sound, so that it does not pass by reading everything.
"""

import datetime as dt
import math
from decimal import Decimal
from functools import partial
from operator import methodcaller

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from support.skipping.proofcases import ProofCase

from snaploom.errors import IndexNotPossible
from snaploom.skipping.spark.interfaces.enable import setting


def test_trap_01_not_equal_drops_only_files_of_that_value(case: ProofCase) -> None:
    contents = ([1, 1], [1, 2], [1, None], [None, None], [3, 3])
    case.write(*({"a": pa.array(each, pa.int32())} for each in contents)).min_max("a")
    assert case.kept("a <> 1") == 2
    assert case.kept("a <> 1 OR a IS NULL") == 4
    assert case.kept("NOT (a <=> 1)") == 4


@pytest.mark.parametrize("writer", ["spark", "pyarrow"])
@pytest.mark.parametrize("sql_type", ["float", "double"])
def test_trap_02_nan_is_the_greatest(case: ProofCase, writer: str, sql_type: str) -> None:
    if writer == "spark":
        case.write_sql(*(
            f"SELECT {sql_type}(v) d FROM (SELECT explode(array({values})) v)"
            for values in ("'1', 'NaN'", "'1', '2'", "'NaN'")
        ))  # fmt: skip
    else:
        kind = pa.float32() if sql_type == "float" else pa.float64()
        contents = ([1.0, math.nan], [1.0, 2.0], [math.nan])
        case.write(*({"d": pa.array(each, kind)} for each in contents))
    case.index(lambda builder: builder.add_min_max("d").add_value_set("d").add_bloom_filter("d"))
    for where in ("d > 5", f"d = {sql_type}('NaN')", "isnan(d)", f"d >= {sql_type}('Infinity')"):
        assert case.kept(where) == 2
    assert case.kept("d < 5 AND NOT isnan(d)") == 2


def test_trap_03_text_is_ordered_by_utf8_bytes(case: ProofCase) -> None:
    long = "x" * 1100
    case.write({"s": ["\uffff", "🎉"]}, {"s": ["\uffff"]}, {"s": ["a"]}, {"s": [long + "b"]})
    case.min_max("s")
    # The greatest text of the last file is too long to be kept, so that nothing is known above.
    assert case.seen("s > '\uffff'") == (2, ["Row(s='🎉')"])
    assert case.kept(f"s > '{long}a'") == 3
    assert case.kept(f"s = '{long}b'") >= 1
    assert case.kept("s LIKE 'xxx%'") == 1


def test_trap_03_bounds_that_spark_cut_are_not_exact(case: ProofCase) -> None:
    case.write_sql(
        "SELECT concat(repeat('x', 100), chr(id + 97)) s FROM range(3)", "SELECT 'b' s"
    ).min_max("s")
    assert case.kept("s = concat(repeat('x', 100), 'c')") == 1
    assert case.kept("s > concat(repeat('x', 100), 'b')") == 1


@pytest.mark.parametrize("kind", ["VALUE_SET", "BLOOM_FILTER", "MIN_MAX"])
def test_trap_04_zeros_are_one_value(case: ProofCase, kind: str) -> None:
    case.write({"d": [-0.0]}, {"d": [0.0]}, {"d": [1.0]})
    case.index(lambda builder: builder.add(kind, "d"))
    for where in ("d = 0.0D", "d = -0.0D", "d IN (-0.0D, 7)", "d <= -0.0D"):
        assert case.kept(where) >= 2
    assert case.kept("d = -0.0D") < 3


def test_trap_05_file_rewritten_in_place_is_read(case: ProofCase) -> None:
    case.write({"a": [1]}, {"a": [2]}).min_max("a")
    assert case.kept("a = 9") == 0
    case.write({"a": [9]})
    assert case.seen("a = 9") == (1, ["Row(a=9)"])


def test_trap_06_csv_timestamps_in_another_time_zone(case: ProofCase) -> None:
    csv = case.of_format("csv").write_sql("SELECT '2024-01-01 01:00:00'", "SELECT '2024-06-01 0:0'")
    table = csv.of_table("proof_zone", "ts timestamp", "csv").min_max("ts")
    where = "ts = timestamp'2024-01-01 01:00:00+00:00'"
    assert table.kept(where) == 1
    with setting(case.spark, "spark.sql.session.timeZone", "America/New_York"):
        assert table.kept(where) == 2
        assert table.seen("ts = timestamp'2024-01-01 06:00:00+00:00'")[1]


def test_trap_07_column_read_with_another_type(case: ProofCase) -> None:
    csv = case.of_format("csv", inferSchema="true").write_sql("SELECT 9 a", "SELECT 10 a")
    csv.min_max("_c0")
    assert csv.kept("_c0 > 9") == 1

    def as_text() -> DataFrame:
        return case.spark.read.schema("_c0 string").csv(str(case.path))

    assert csv.seen("_c0 > '89'", as_text) == (2, ["Row(_c0='9')"])


def test_trap_07_integers_read_as_wider_ones(case: ProofCase) -> None:
    case.write({"a": pa.array([1], pa.int32())}, {"a": pa.array([2], pa.int32())})
    case.index(lambda builder: builder.add_min_max("a").add_bloom_filter("a"))
    for schema in ("a bigint", "a double", "a decimal(20, 0)"):
        reader = case.spark.read.schema(schema)
        assert case.kept("a = 2", partial(reader.parquet, str(case.path))) == 2


def test_trap_08_unknown_files_are_read(case: ProofCase) -> None:
    case.write({"a": [1]}, {"a": [2]})
    case.declared(lambda builder: builder.add_min_max("a")).create()
    assert case.kept("a = 1") == 2
    case.refresh()
    assert case.kept("a = 1") == 1
    case.write({"a": [1]}, {"a": [2]}, {"a": [1]})
    assert case.seen("a = 1")[1] == ["Row(a=1)", "Row(a=1)"]


@pytest.mark.parametrize("kind", ["VALUE_SET", "BLOOM_FILTER", "MIN_MAX"])
def test_trap_09_in_lists_of_every_length_and_type(case: ProofCase, kind: str) -> None:
    days = [dt.date(2024, 1, day) for day in (1, 9, 20)]
    stamps = [dt.datetime(2024, 1, 1, 0, 0, 0, micro, dt.UTC) for micro in (1, 2, 3)]
    case.write(*(
        {"a": [n * 100], "day": [day], "ts": pa.array([stamp], pa.timestamp("us", "UTC"))}
        for n, (day, stamp) in enumerate(zip(days, stamps, strict=True))
    )).index(lambda builder: builder.add(kind, "a").add(kind, "day").add(kind, "ts"))  # fmt: skip
    gaps = ", ".join(str(number) for number in range(1, 40) if number != 100)
    assert case.kept("a IN (NULL, 100)") == 1
    assert case.kept("a NOT IN (NULL, 100)") == 0
    assert case.kept("day IN (date'2024-01-09', date'2023-01-01')") == 1
    assert case.kept("ts IN (timestamp'2024-01-01 00:00:00.000002+00:00')") == 1
    assert case.kept(f"a IN ({gaps}, 300)") == 0
    assert case.kept(f"a IN ({gaps}, 200)") == 1
    assert case.kept("a NOT IN (0, 7)") >= 2


def test_trap_10_full_sets_and_blooms_are_unknown(case: ProofCase) -> None:
    case.write({"a": list(range(50))}, {"a": [1, 2]})
    case.index(lambda builder: builder.add_value_set("a", limit=3).add_bloom_filter("a", ndv=2))
    assert case.kept("a = 49") == 1
    assert case.kept("a = 2") == 2


def test_trap_11_partition_of_a_data_column_is_refused(case: ProofCase) -> None:
    case.write({"a": [1]})
    with pytest.raises(IndexNotPossible, match="partition"):
        case.declared(lambda builder: builder.add_partitions("a")).create()


def test_trap_12_or_with_an_uncovered_side(case: ProofCase) -> None:
    case.write({"a": [1], "b": [5]}, {"a": [2], "b": [6]}).min_max("a")
    assert case.kept("a = 1 OR b = 6") == 2
    assert case.kept("a = 1 OR rand() < 2") == 2
    assert case.kept("a = 1 AND b = 5") == 1


def test_trap_13_not_over_a_clause(case: ProofCase) -> None:
    case.write({"a": [1, 5], "s": ["ab", "x"]}, {"a": [3, 3], "s": ["ab", "abc"]})
    case.index(lambda builder: builder.add_min_max("a", "s").add_value_set("a"))
    assert case.kept("NOT (a = 3)") == 1
    assert case.kept("NOT (a > 2)") == 1
    assert case.kept("NOT (a > 2 AND a < 4)") == 1
    assert case.kept("NOT (a < 2 OR s LIKE '%b')") == 2
    assert case.kept("s NOT LIKE 'ab%'") == 1


def test_trap_14_index_that_cannot_be_read(case: ProofCase) -> None:
    case.write({"a": [1]}, {"a": [2]}).min_max("a")
    assert case.kept("a = 1") == 1
    for segment in case.folder.glob("indexes/*/segments/*"):
        segment.unlink()
    assert case.kept("a = 1") == 2


def test_trap_15_hashes_are_of_the_columns_own_type(case: ProofCase) -> None:
    kinds = {"t": pa.int8(), "i": pa.int32(), "l": pa.int64(), "f": pa.float32()}
    kinds |= {"m": pa.decimal128(9, 2)}
    case.write(*(
        {name: pa.array([Decimal(n) if name == "m" else n], kind) for name, kind in kinds.items()}
        for n in (5, 6, 7)
    ))  # fmt: skip
    case.index(lambda builder: builder.add_bloom_filter(*kinds))
    for name in kinds:
        for value in ("5", "5L", "CAST(5 AS tinyint)", "5BD", "5.0D", "float(5)", "'5'"):
            assert 1 <= case.kept(f"{name} = {value}") <= 3
        assert case.kept(f"{name} <=> 5") >= 1


@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_trap_16_moments_to_the_microsecond(case: ProofCase, stored: str) -> None:
    moments = ["1899-12-31 00:00:00.000001", "1969-12-31 23:59:59.999999", "2024-01-01 0:0:0.1234"]
    with setting(case.spark, "spark.sql.parquet.outputTimestampType", stored):
        case.write_sql(*(f"SELECT timestamp'{moment}' ts" for moment in moments))
    case.min_max("ts")
    for moment in moments:
        for operator in ("=", "<=", ">="):
            case.kept(f"ts {operator} timestamp'{moment}'")
    assert case.kept("ts > timestamp'2023-01-01'") == 1


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_trap_16_days_of_the_old_calendar(case: ProofCase, mode: str) -> None:
    with (
        setting(case.spark, "spark.sql.parquet.datetimeRebaseModeInWrite", mode),
        setting(case.spark, "spark.sql.parquet.int96RebaseModeInWrite", mode),
    ):
        case.write_sql(*(
            f"SELECT date'{day}' d, timestamp'{day} 00:00:00' ts"
            for day in ("1500-03-01", "1582-10-04", "2000-01-01")
        ))  # fmt: skip
    case.min_max("d", "ts")
    for day in ("1500-03-01", "1582-10-04"):
        assert case.seen(f"d = date'{day}'")[1]
        assert case.seen(f"ts = timestamp'{day} 00:00:00'")[1]
    assert case.kept("d > date'1999-01-01'") < 3


def test_trap_17_nulls_empty_files_and_missing_columns(case: ProofCase) -> None:
    kind = pa.int32()
    case.write(
        {"a": pa.array([1], kind), "b": pa.array([1], kind)},
        {"a": pa.array([2, None], kind), "b": pa.array([None, None], kind)},
        {"a": pa.array([], kind), "b": pa.array([], kind)},
        {"a": pa.array([3], kind)},
    )
    case.index(lambda builder: builder.add_min_max("a", "b").add_value_set("b"))
    assert case.kept("b = 1") == 1
    assert case.kept("b <> 7") == 1
    assert case.kept("b IS NULL") == 2
    assert case.kept("b IS NOT NULL") == 1
    assert case.kept("coalesce(b, 7) = 7") == 2
    assert case.kept("a IS NULL") == 1


def test_trap_18_binary_decimal_nested_and_null_partitions(case: ProofCase) -> None:
    case.write_sql(
        "SELECT X'ff' x, 1.50BD m, struct(struct(1 b) a, 's' c) st, CAST(NULL AS string) p",
        "SELECT X'00' x, -1.50BD m, struct(struct(2 b) a, 't' c) st, 'a b/c%=é' p",
        "SELECT X'' x, CAST(NULL AS decimal(3,2)) m, "
        "CAST(NULL AS struct<a: struct<b: int>, c: string>) st, '' p",
        by=["p"],
    )
    case.index(
        lambda builder: (
            builder.add_min_max("x", "m", "st.a.b", "st.c", "p")
            .add_value_set("x", "m", "st.a.b", "p")
            .add_partitions("p")
        )
    )
    for where in ("x = X'ff'", "m = 1.5", "m < 0", "st.a.b = 2", "st.c = 's'", "p = 'a b/c%=é'"):
        assert case.kept(where) == 1
    assert case.kept("st IS NULL") >= 1
    assert case.kept("st.a.b IS NULL") == 1
    assert case.kept("p IS NULL") == 2
    assert case.kept("p <=> NULL AND x = X'ff'") == 1


def test_trap_19_default_of_an_added_column(case: ProofCase) -> None:
    table = case.of_table("proof_default", "a int")
    case.spark.sql("INSERT INTO proof_default VALUES (1)")
    case.spark.sql("ALTER TABLE proof_default ADD COLUMN b int DEFAULT 7")
    case.spark.sql("INSERT INTO proof_default VALUES (2, 1)")
    table.min_max("a", "b")
    assert table.seen("b = 7") == (2, ["Row(a=1, b=7)"])
    assert table.kept("b IS NULL") == 2
    assert table.kept("a = 1") == 1


def test_trap_20_collations_and_padding(case: ProofCase) -> None:
    table = case.of_table("proof_collated", "s string COLLATE UTF8_LCASE, c char(5), a int")
    case.spark.sql("INSERT INTO proof_collated VALUES ('abc', 'x', 1)")
    case.spark.sql("INSERT INTO proof_collated VALUES ('zzz', 'y', 2)")
    table.min_max("a")
    for name in ("s", "c"):
        with pytest.raises(IndexNotPossible):
            table.declared(methodcaller("add_min_max", name)).create()
    assert table.seen("s = 'ABC'")[1]
    assert table.seen("c = 'x'")[1]
    assert table.kept("a = 2 AND s = 'ZZZ'") == 1


def test_trap_20_collation_of_the_query(case: ProofCase) -> None:
    case.write({"s": ["abc"]}, {"s": ["zzz"]})
    case.index(lambda builder: builder.add_min_max("s").add_value_set("s"))
    assert case.kept("s = 'abc'") == 1
    assert case.seen("s COLLATE UTF8_LCASE = 'ABC'")[1]
    assert case.seen("s COLLATE UNICODE_CI IN ('ABC', 'ZzZ')") == (
        2,
        ["Row(s='abc')", "Row(s='zzz')"],
    )
    assert case.seen("startswith(s COLLATE UTF8_LCASE, 'AB')")[1]


def test_trap_21_a_file_written_just_before_indexing(case: ProofCase) -> None:
    case.write({"a": [1]}, {"a": [2]}).min_max("a")
    before = case.files[0].stat()
    case.write({"a": [7]})
    after = case.files[0].stat()
    assert before.st_size == after.st_size
    assert before.st_mtime_ns // 10**6 != after.st_mtime_ns // 10**6
    assert case.seen("a = 7") == (1, ["Row(a=7)"])


@pytest.mark.parametrize("statement", ["CREATE TABLE {} USING parquet AS", "INSERT INTO {}"])
def test_trap_22_statements_that_run_at_once(case: ProofCase, statement: str) -> None:
    case.write(*({"a": [n], "b": [n % 2]} for n in range(4))).min_max("a")
    spark = case.spark
    names = iter(["proof_copy_on", "proof_copy_off"])

    def run() -> DataFrame:
        name = next(names)
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        if statement.startswith("INSERT"):
            spark.sql(f"CREATE TABLE {name} (a bigint, b bigint) USING parquet")
        case.read().createOrReplaceTempView("proof_source")
        command = statement.format(name)
        spark.sql(f"{command} SELECT a, b FROM proof_source WHERE a >= 2 AND b = 1")
        return spark.table(name)

    assert case.seen("true", run)[1] == ["Row(a=3, b=1)"]
