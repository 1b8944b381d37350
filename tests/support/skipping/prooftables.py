"""Small tables of every type, value and layout that have ever lost rows, made from a seed."""

import math
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.write import write_frame
from snaploom.models.outputdataset import DataCompression, DataFormat
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder

Value = bool | int | float | Decimal | str | bytes | date | datetime

SQL_TYPES: Mapping[str, str] = {
    "bo": "boolean",
    "ti": "tinyint",
    "sm": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "m": "decimal(9,2)",
    "w": "decimal(30,10)",
    "s": "string",
    "x": "binary",
    "dt": "date",
    "ts": "timestamp",
    "nt": "timestamp_ntz",
    "st.a": "int",
    "st.s": "string",
}
"""Columns and nested fields of the tables."""

ARROW: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(30,10)": pa.decimal128(30, 10),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

_DAYS = [
    *(date(1, 1, 1), date(1500, 3, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31)),
    *(date(1969, 12, 31), date(1970, 1, 1), date(1970, 1, 2), date(2000, 2, 29)),
    *(date(2024, 1, 1), date(2024, 1, 2), date(2024, 12, 31), date(9999, 12, 31)),
]
_MOMENTS = [
    *(datetime(1, 1, 1), datetime(1582, 10, 10, 1), datetime(1899, 12, 31, 23, 59, 59, 999_999)),
    *(datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1)),
    *(datetime(1970, 1, 1) + timedelta(microseconds=n) for n in (1, 2, 999, 1000, 1001)),
    *(datetime(2024, 3, 10, 7, 30), datetime(2024, 7, 1), datetime(2024, 7, 1, 23, 59, 59)),
    *(datetime(2024, 7, 1, 12, 34, 56, 123_456), datetime(2024, 7, 1, 12, 34, 56, 123_457)),
    datetime(9999, 12, 30),
]
_TEXTS = [
    *("", "a", "ab", "abc", "abcd", "Abc", "ABC", " a", "a ", "a%b", "a_b", "a\\b", "it's", "é"),
    *("ß", "Grüße", "🎉", "🎉x", "\uffff", "\ue000", "prefix-a", "prefix-aa", "prefix-ab"),
    *("prefix-b", "\x01", "a\x01", "100", "-5", "x" * 1100 + "a", "x" * 1100 + "b", "İ"),
]
_WIDE = ["0", "0.0000000001", "-0.0000000001", "12345678901234567890.0000000001", "1.5", "-1.5"]
_WIDE += ["99999999999999999999.9999999999", "-99999999999999999999.9999999999", "2", "5"]

POOLS: Mapping[str, Sequence[Value]] = {
    "boolean": [False, True],
    "tinyint": [-128, -100, -1, 0, 1, 2, 3, 5, 6, 7, 50, 126, 127],
    "smallint": [-(2**15), -300, -1, 0, 1, 2, 3, 5, 300, 301, 302, 2**15 - 1],
    "int": [-(2**31), -1000, -5, -1, 0, 1, 2, 3, 4, 5, 6, 1000, 1001, 2**24 + 1, 2**31 - 1],
    "bigint": [-(2**63), -(2**31) - 1, -1, 0, 1, 2, 3, 5, 6, 2**53, 2**53 + 1, 2**63 - 1],
    "float": [math.nan, -math.inf, -1.5, -0.0, 0.0, 1e-30, 0.1, 1.5, 3.0, 2.0**24, math.inf],
    "double": [math.nan, -math.inf, -1.5, -0.0, 0.0, 1e-30, 0.1, 1.5, 3.0, 2.0**53, math.inf],
    "decimal(9,2)": [
        Decimal(n).scaleb(-2) for n in (-999999999, -150, -1, 0, 1, 99, 100, 150, 200, 999999999)
    ],
    "decimal(30,10)": sorted(map(Decimal, _WIDE)),
    "string": sorted(_TEXTS, key=str.encode),
    "binary": [b"", b"\x00", b"\x00\x00", b"ab", b"abc", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
    "date": _DAYS,
    "timestamp": [moment.replace(tzinfo=UTC) for moment in _MOMENTS],
    "timestamp_ntz": _MOMENTS,
}
"""Values of each type, in order but for NaN; near ones and those at the edges."""

PARTITIONS: Sequence[str | None] = ["plain", "a b/c%d=e", "é:🎉", None, "", "it's", "x#y?z"]
"""Values of the partition column `p`."""

LAYOUTS = ("arrow", "int96", "mixed", "partitioned", "orc", "json", "csv")
"""Who wrote the files, and how they lie."""
NATIVE = ("native", "native partitioned")
"""The same by Comet, in a session that has it."""

_NOT_IN_CSV = ("x", "st.a", "st.s")


@dataclass(frozen=True)
class ProofTable:
    name: str
    """Its name in Spark's catalog."""
    path: str
    file_format: str
    columns: Mapping[str, str]
    """Spark types by column or field, of partition columns too."""

    @property
    def by_catalog(self) -> bool:
        """Whether types are the catalog's, for files do not contain them."""
        return self.file_format in ("json", "csv")

    def frame(self, spark: SparkSession) -> DataFrame:
        if self.by_catalog:
            return spark.table(self.name)
        return spark.read.format(self.file_format).load(self.path)

    def subject(self, builder: IndexBuilder) -> IndexBuilder:
        if self.by_catalog:
            return builder.on_table(self.name)
        return builder.on_path(self.path, self.file_format)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(name for name in ("p", "q") if name in self.columns)


def make_table(spark: SparkSession, folder: Path, layout: str, seed: int) -> ProofTable:
    """A table from a seed: always the same rows in the same files.

    Args:
        spark: writes what pyarrow does not.
        folder: a new folder.
        layout: one of `LAYOUTS` or `NATIVE`.
        seed: of all that is drawn.
    """
    rng = random.Random(f"{layout} {seed}")
    stage, data = folder / "stage", folder / "data t"
    stage.mkdir(parents=True)
    data.mkdir()
    names = [name for name in SQL_TYPES if layout != "csv" or name not in _NOT_IN_CSV]
    contents = _contents(rng, names)
    types = {name: SQL_TYPES[name] for name in names}
    file_format = layout if layout in ("orc", "json", "csv") else "parquet"
    if layout in ("arrow", "mixed"):
        _write_arrow(rng, contents, data)
    if layout in NATIVE:
        _write_with_comet(spark, contents, stage, data, layout)
    elif layout != "arrow":
        part = contents[::2] if layout == "mixed" else contents
        _write_spark(spark, part, stage, data, layout, file_format)
    if layout.endswith("partitioned"):
        types |= {"p": "string", "q": "int"}
    name = f"proof_{layout}_{seed}".replace(" ", "_")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    if file_format != "parquet":
        columns = _ddl(names)
        spark.sql(f"CREATE TABLE {name} ({columns}) USING {file_format} LOCATION '{data}'")
    else:
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{data}'")
        if layout.endswith("partitioned"):
            spark.sql(f"MSCK REPAIR TABLE {name}")
    return ProofTable(name, str(data), file_format, types)


def _contents(rng: random.Random, names: Sequence[str]) -> list[pa.Table]:
    """What the files hold; the first one has every column, the others may lack some."""
    kinds = ["plain", "plain", "plain", "nulls", "empty", "alike", "fewer", "plain"]
    return [_content(rng, names, kind) for kind in kinds]


def _content(rng: random.Random, names: Sequence[str], kind: str) -> pa.Table:
    count = 0 if kind == "empty" else rng.randint(2, 7)
    columns: dict[str, list[Value | None]] = {}
    for name in names:
        if kind == "nulls":
            columns[name] = [None] * count
            continue
        drawn = _window(rng, POOLS[SQL_TYPES[name]], 1 if kind == "alike" else 4)
        share = rng.choice([0, 0, 0.3])
        columns[name] = [None if rng.random() < share else rng.choice(drawn) for _ in range(count)]
    table = _arrow_table(columns)
    if kind == "fewer":
        whole = table.column_names
        table = table.select([name for name in whole if rng.random() < 0.5] or whole[:1])
    return table


def _window(rng: random.Random, pool: Sequence[Value], most: int) -> Sequence[Value]:
    size = rng.randint(1, most)
    start = rng.randrange(max(len(pool) - size, 0) + 1)
    strays = [rng.choice(pool)] if most > 1 and rng.random() < 0.15 else []
    return [*pool[start : start + size], *strays]


def _arrow_table(columns: Mapping[str, Sequence[Value | None]]) -> pa.Table:
    arrays = {
        name: pa.array(values, ARROW[SQL_TYPES[name]])
        for name, values in columns.items()
        if "." not in name
    }
    if "st.a" in columns:
        pairs = zip(columns["st.a"], columns["st.s"], strict=True)
        kind = pa.struct([("a", pa.int32()), ("s", pa.string())])
        # A struct that is NULL itself hides its fields.
        rows = [
            None if number is None and text is None else {"a": number, "s": text}
            for number, text in pairs
        ]
        arrays["st"] = pa.array(rows, kind)
    return pa.table(arrays)


def _write_arrow(rng: random.Random, contents: Sequence[pa.Table], data: Path) -> None:
    for number, table in enumerate(contents):
        pq.write_table(
            table,
            data / f"f{number:02} #+.parquet",
            row_group_size=rng.choice([2, 1000]),
            write_statistics=rng.random() < 0.8,
            use_dictionary=rng.random() < 0.5,
            data_page_version=rng.choice(["1.0", "2.0"]),
        )


def _write_with_comet(
    spark: SparkSession, contents: Sequence[pa.Table], stage: Path, data: Path, layout: str
) -> None:
    """Have Comet write the same rows. It does not read `smallint`, and writes no empty file."""
    for number, table in enumerate(contents):
        kinds = [
            field.with_type(pa.int32()) if field.type == pa.int16() else field
            for field in table.schema
        ]
        read = stage / f"{number:02}.parquet"
        pq.write_table(table.cast(pa.schema(kinds)), read)
        columns = [
            "CAST(sm AS smallint) AS sm" if name == "sm" else name for name in table.column_names
        ]
        frame = spark.read.parquet(str(read)).coalesce(1).selectExpr(*columns)
        place = f"p={'bc'[number % 2]}/q={number % 3}" if layout.endswith("partitioned") else ""
        write_natively(frame, data / place, f"n{number:02}.parquet")


def write_natively(frame: DataFrame, folder: Path, name: str = "part.parquet") -> None:
    """Write one file into a folder, and see that Comet did; none where there is no row."""
    staged = folder.with_name(f"_{folder.name}-{name}")
    write_frame(frame, f"file:{staged}", DataFormat.PARQUET, DataCompression.ZSTD)
    folder.mkdir(parents=True, exist_ok=True)
    for file in staged.glob("*.parquet"):
        assert "parquet-rs" in pq.ParquetFile(file).metadata.created_by
        shutil.move(file, folder / name)
    shutil.rmtree(staged)


def _write_spark(
    spark: SparkSession,
    contents: Sequence[pa.Table],
    stage: Path,
    data: Path,
    layout: str,
    file_format: str,
) -> None:
    """Have Spark write the same rows: one file of its own for each."""
    for number, table in enumerate(contents):
        marks = {
            "file": pa.array([number] * len(table), pa.int32()),
            "p": pa.array([PARTITIONS[number % len(PARTITIONS)]] * len(table), pa.string()),
            "q": pa.array([number % 2] * len(table), pa.int32()),
        }
        for name, column in marks.items():
            table = table.append_column(name, column)
        pq.write_table(table, stage / f"{number:02}.parquet")
    names = sorted({name.split(".")[0] for name in contents[0].column_names})
    by = ("p", "q") if layout == "partitioned" else ("file",)
    schema = f"{_ddl(contents[0].column_names)}, file int, p string, q int"
    rows = spark.read.schema(schema).parquet(str(stage)).select(*names, *by).coalesce(1)
    stored = "INT96" if layout in ("int96", "mixed") else "TIMESTAMP_MICROS"
    out = data if layout == "partitioned" else stage / "out"
    with setting(spark, "spark.sql.parquet.outputTimestampType", stored):
        writer = rows.write.mode("append").format(file_format)
        if file_format == "csv":
            writer = writer.option("escape", '"').option("quoteAll", "true")
        writer.partitionBy(*by).save(str(out))
    if layout == "partitioned":
        return
    for written in sorted(out.glob("file=*/part-*")):
        shutil.move(written, data / f"s{written.parent.name[5:]:0>2}.{file_format}")


def _ddl(names: Sequence[str]) -> str:
    parts = [f"{name} {SQL_TYPES[name]}" for name in names if name in SQL_TYPES and "." not in name]
    if any(name in ("st", "st.a") for name in names):
        parts.append("st struct<a: int, s: string>")
    return ", ".join(parts)
