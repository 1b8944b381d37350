"""The entry points through which SQL text enters a job, each as the code behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.expectations import Expectations
from snaploom.engine.keys import KeyPart, check_keys
from snaploom.engine.sources.fieldtransformers import Columns, transformed
from snaploom.engine.sources.queries.sourcequery import SourceQuery
from snaploom.errors import SnaploomError, StatementInvalid
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.outputdataset import Check
from snaploom.skipping.spark.relations.expressions import Literal
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetfiles import choose_files
from snaploom.skipping.spark.targets.targetlookup import open_path
from snaploom.sparkgate.gate import SqlPlace, checked_statement

STATEMENT = SqlPlace(None, None, StatementInvalid, "one SELECT, of listed functions")

EntryPoint = Callable[[str], object]


@dataclass(frozen=True)
class SqlEntries:
    """Every entry point, over a source `src` with the columns `value` and `id`."""

    spark: SparkSession
    target: SparkTarget
    """Files with these columns and the partition column `p`."""

    @property
    def of_expressions(self) -> dict[str, EntryPoint]:
        """Entry points of expressions, by their names in the table of attacks."""
        return {
            "transformer": self.transformer,
            "joinKey": self.join_key,
            "check": self.check,
            "indexExpression": self.target.expression,
            "indexWhere": self.index_where,
        }

    @property
    def of_queries(self) -> dict[str, EntryPoint]:
        """Entry points of queries, by their names in the table of attacks."""
        return {
            "dataQuery": self.data_query,
            "snapshotQuery": self.snapshot_query,
            "statement": self.statement,
        }

    @property
    def source(self) -> DataFrame:
        return self.spark.createDataFrame([("a", 1)], "value string, id int")

    def transformer(self, text: str) -> list[object]:
        change = {"selectors": [{"coordinateIncludeRegex": "^value$"}], "expression": {"sql": text}}
        transformer = FieldTransformer.parse(
            {
                "apiVersion": "snaploom.io/v1alpha1",
                "kind": "FieldTransformer",
                "metadata": {"name": "t"},
                "spec": {"transformers": [change]},
            }
        )
        shaped = transformed(Columns(self.source, ()), [transformer], 0, "DataSource/src")
        return [row[0] for row in shaped.frame.collect()]

    def join_key(self, text: str) -> list[object]:
        part, source = KeyPart(text, None, None), self.source
        made = source.select("*", part.column(self.spark, "r"))
        check_keys(made, source, {"r": [part]})
        return [row[-1] for row in made.collect()]

    def check(self, text: str) -> list[object]:
        check = Check.parse({"name": "c", "expression": f"({text}) IS NOT NULL", "mode": "FAIL"})
        model = SimpleNamespace(root_data_source=SimpleNamespace(root_key=()))
        spec = SimpleNamespace(checks=(check,), data_model=model)
        output = SimpleNamespace(spec=spec, identity="OutputDataset/o")
        rows = self.source.selectExpr("struct(*) AS data", "value", "id")
        return list(Expectations(output, rows).frame.collect())  # type: ignore[arg-type]

    def data_query(self, text: str) -> list[object]:
        path = "spec.simpleVirtual.dataQuery"
        query = SourceQuery(self.spark, "DataSource/v", path, ("src",))
        return [row[0] for row in query.over(text, {"src": self.source}).collect()]

    def snapshot_query(self, text: str) -> list[object]:
        path = "spec.complexVirtual.snapshotQuery"
        query = SourceQuery(self.spark, "DataSource/v", path, ("src", "other"))
        frames = {"src": self.source, "other": self.source}
        return [row[0] for row in query.over(text, frames).collect()]

    def statement(self, text: str) -> list[object]:
        self.source.createOrReplaceTempView("src")
        try:
            return [row[0] for row in checked_statement(self.spark, text, STATEMENT).collect()]
        finally:
            self.spark.catalog.dropTempView("src")

    def index_where(self, text: str) -> object:
        files = {"file:/a": (Literal("a", "string"), Literal(1, "int"))}
        columns = [("value", "string"), ("id", "int")]
        return choose_files(self.spark, f"({text}) IS NOT NULL", columns, files)


def sql_entries(spark: SparkSession, folder: Path) -> SqlEntries:
    """The entry points, with files to index below a folder."""
    place = str(folder / "indexed")
    rows = spark.createDataFrame([("a", 1, 1)], "value string, id int, p int")
    rows.write.partitionBy("p").parquet(place)
    return SqlEntries(spark, open_path(spark, place, "parquet"))


def refusal(entry: EntryPoint, text: str) -> Exception | None:
    """The error with which an entry point, or Spark, refuses a text; None when it passes."""
    try:
        entry(text)
    except (SnaploomError, AnalysisException) as error:
        return error
    return None


def as_query(expression: str) -> str:
    """A query that computes an expression over the source."""
    return f"select {expression} as x from src"


def through(entries: SqlEntries, entry: str, expression: str) -> Exception | None:
    """How an entry point refuses an expression, in a query where it takes queries."""
    if entry in entries.of_expressions:
        return refusal(entries.of_expressions[entry], expression)
    return refusal(entries.of_queries[entry], as_query(expression))
