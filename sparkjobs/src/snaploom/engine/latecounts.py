"""Counts that are taken once a snapshot is written, from its files and the keys of its sources.

A count that is taken while rows pass cuts the plan where it is taken. What follows needs none: the
rows of the output and its matches are in its files, and what joins between other sources do is seen
from their keys. Files are read again for that, so that it holds only where this is cheap and gives
the same rows: Parquet, which a run looks at again before it publishes (rule W34).
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache, reduce

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.engine.fold import DATA, NUMBER, Counts, Point, Side, Weave, bytes_of_row, packed_name
from snaploom.engine.write import WrittenFiles
from snaploom.models.outputdataset import DataFormat
from snaploom.plan.tree import JoinNode
from snaploom.spark import jvm
from snaploom.types.schemas import quote

TOP = Point(0, is_out=True)
"""Location of the rows as they are written."""
_ROW_BY_ROW = frozenset({"Filter", "Project", "SubqueryAlias", "Union"})
"""Operations that read no more columns than are asked for, and give the same rows again."""


def counts_are_late(session: SparkSession, data_format: DataFormat) -> bool:
    """Whether counts of an output in a format are taken late: where a plan is run natively.

    Spark's own engine takes as long for either at scale factor 0.3, and for twenty rows of four
    joins 2.2 processor seconds instead of 1.7 observed ones.
    """
    return jvm.is_native(session) and data_format.of_files is DataFormat.PARQUET


class LateCounts:
    """The points of one fold that need no count while its rows pass."""

    def __init__(self, weave: Weave, left_out: Container[Point]) -> None:
        self._weave = weave
        self.points = frozenset(self._points(left_out))

    def _points(self, left_out: Container[Point]) -> Iterator[Point]:
        @cache
        def is_of_files(field_name: str) -> bool:
            return is_of_parquet(self._weave.frames[field_name])

        yield TOP
        for node in self._weave.nodes:
            children = [child.field_name for child in self._weave.children(node.number)]
            if children and is_of_files(node.field_name):
                yield Point(node.number, is_out=False)
            out = Point(node.number, is_out=True)
            if out in left_out or out == TOP:
                continue
            if all(map(is_of_files, [node.field_name, *children])):
                yield out

    def count(self, passed: Iterable[Point], files: WrittenFiles) -> dict[Point, Counts]:
        """The counts at those of its points that a fold passed, by one Spark job.

        Counts after the joins of a node leave out what hangs on its children: where that
        multiplies rows, their own counts show it.
        """
        ordered = [point for point in passed if point in self.points]
        counted = [self._counted(point, files) for point in ordered]
        numbered = (
            one.select(
                sf.lit(place).alias("place"),
                sf.array(*(sf.col(quote(name)) for name in one.columns)),
            )
            for place, one in enumerate(counted)
        )
        rows = reduce(DataFrame.unionAll, numbered).collect()
        return {
            ordered[place]: dict(zip(counted[place].columns, counts, strict=True))
            for place, counts in rows
        }

    def _counted(self, point: Point, files: WrittenFiles) -> DataFrame:
        node = self._weave.tree.by_number[point.number]
        side = Side(self._weave, node)
        if not point.is_out:
            return side.base().agg(*side.in_counters())
        if point == TOP:
            return files.read(self._places(files.schema)).agg(*side.out_counters())
        frame = side.base()
        for child in side.children:
            right = Side(self._weave, child)
            keys = right.keys_once() if child.group_by else right.base()
            keys = keys.select(*right.own_keys, sf.lit(True).alias(packed_name(child.number)))
            frame = frame.join(keys, side.condition(child, right), "left")
        joined = {child.number: sf.col(packed_name(child.number)) for child in side.children}
        return frame.agg(*side.out_counters(joined))

    def _places(self, schema: spark_types.StructType) -> spark_types.StructType:
        """As little of the files' schema as shows which sources a row has."""
        fields = _field_types(schema)
        children = self._weave.children(0)
        thin = [_field(c, self._thin(c, fields[c.field_name])) for c in children]
        if self._weave.snapshots > 1:
            thin.append(spark_types.StructField(NUMBER, spark_types.IntegerType()))
        return spark_types.StructType(thin)

    def _thin(self, node: JoinNode, data_type: spark_types.DataType) -> spark_types.DataType:
        """The type of a source's field with one column at its end, whose absence is the source's.

        What is absent further up is absent there as well, and Parquet keeps how far up.
        """
        if isinstance(data_type, spark_types.ArrayType):
            return spark_types.ArrayType(self._column_of(data_type.elementType))
        fields = _field_types(data_type)
        children = self._weave.children(node.number)
        if not children:
            return self._column_of(data_type)
        return spark_types.StructType(
            [_field(child, self._thin(child, fields[child.field_name])) for child in children]
        )

    @staticmethod
    def _column_of(packed: spark_types.DataType) -> spark_types.StructType:
        data = _field_types(packed)[DATA]
        assert isinstance(data, spark_types.StructType)
        narrowest = min(data.fields, key=_width)
        return spark_types.StructType().add(DATA, spark_types.StructType([narrowest]))


def is_of_parquet(frame: DataFrame) -> bool:
    """Whether a frame has rows of Parquet files, chosen and projected the same way each time."""
    plan = frame._jdf.queryExecution().analyzed()
    return bool(plan.deterministic()) and _is_of_parquet(plan)


def _is_of_parquet(plan: JavaObject) -> bool:
    name = plan.getClass().getSimpleName()
    if name == "LogicalRelation":
        relation = plan.relation()
        is_of_files = relation.getClass().getSimpleName() == "HadoopFsRelation"
        return is_of_files and str(relation.fileFormat()) == "Parquet"
    children = plan.children()
    return name in _ROW_BY_ROW and all(
        _is_of_parquet(children.apply(place)) for place in range(children.size())
    )


def _field(child: JoinNode, data_type: spark_types.DataType) -> spark_types.StructField:
    return spark_types.StructField(child.field_name, data_type)


def _field_types(data_type: spark_types.DataType) -> Mapping[str, spark_types.DataType]:
    assert isinstance(data_type, spark_types.StructType)
    return {field.name: field.dataType for field in data_type.fields}


def _width(field: spark_types.StructField) -> tuple[bool, int]:
    nested = {"struct", "array", "map", "variant"}
    return field.dataType.typeName() in nested, bytes_of_row([field])
