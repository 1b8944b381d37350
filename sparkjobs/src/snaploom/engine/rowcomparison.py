"""Compares the rows of two frames by key, in Spark; the driver receives a bounded number.

Values are the same where Spark's `<=>` takes them for the same: NULL is NULL, NaN is NaN, and -0.0
is 0.0. Lists are compared in their order, maps without one. A struct is compared field by field;
where it is NULL on one side only, the struct itself differs too.

Keys match in the same way, NULL with NULL. Where a key stands in several rows of a side, rows that
are equal as a whole are matched first, one by one, and the others in the order of their values: no
row is compared with two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.confidential import without_secrets
from snaploom.engine.expectations import key_columns
from snaploom.engine.keys import orderable_form
from snaploom.plan import differences
from snaploom.types.schemas import path_text, quote

_BEFORE, _AFTER, _CHANGE, _PLACE = "before", "after", "change", "place"
_SIDE, _CONTENT, _NUMBER, _IS_EQUAL = "side", "content", "number", "is_equal"


@dataclass(frozen=True)
class _Compared:
    parts: tuple[str, ...]
    kind: spark.DataType

    @property
    def path(self) -> str:
        return path_text(self.parts)

    def of(self, side: str) -> Column:
        column = sf.col(side)
        for part in self.parts:
            column = column.getField(part)
        return column

    @property
    def differs(self) -> Column:
        if isinstance(self.kind, spark.StructType):
            return self.of(_BEFORE).isNull() != self.of(_AFTER).isNull()
        before, after = (orderable_form(self.of(side), self.kind) for side in (_BEFORE, _AFTER))
        return ~before.eqNullSafe(after)

    def text(self, side: str) -> Column:
        if isinstance(self.kind, spark.StructType):
            is_null = self.of(side).isNull()
            return sf.when(is_null, sf.lit(None).cast("string")).otherwise(sf.lit("a struct"))
        return _text(self.of(side), self.kind)


def compare_rows(
    before: DataFrame, after: DataFrame, root_key: Sequence[str], samples: int
) -> differences.RowChanges:
    """Match rows by key, and compare all other columns.

    Both have the same schema; the fewer rows share a key, the faster. `samples` is the number of
    rows of each kind to show.

    Raises:
        CheckInvalid: the schema has no such column.
    """
    fields = tuple(_compared(before.schema, ()))
    key = key_columns(before.schema, root_key)
    names = [f"k{number}" for number in range(len(key))]
    sides = [
        frame.select(
            *(sf.col(text).alias(name) for text, name in zip(key, names, strict=True)),
            sf.struct(*(sf.col(quote(name)) for name in frame.columns)).alias(side),
        )
        for frame, side in ((before, _BEFORE), (after, _AFTER))
    ]
    matched = names
    if any(not side.groupBy(*names).count().where(sf.col("count") > 1).isEmpty() for side in sides):
        sides, matched = _numbered(sides, names, before.schema), [*names, _IS_EQUAL, _NUMBER]
    # Rows are compared as a whole: a condition with a part for each column, which the optimizer
    # copies to wherever it is used, takes minutes to plan for some hundred columns.
    whole = orderable_form(sf.col(_BEFORE), before.schema).eqNullSafe(
        orderable_form(sf.col(_AFTER), after.schema)
    )
    change = (
        sf.when(sf.col(_BEFORE).isNull(), differences.RowChange.ADDED.value)
        .when(sf.col(_AFTER).isNull(), differences.RowChange.REMOVED.value)
        .when(~whole, differences.RowChange.CHANGED.value)
    )
    joined = _joined(sides[0], sides[1], matched).withColumn(_CHANGE, change)
    counts = _counts(joined, fields)
    differing = sorted(
        (-counts[f"f{number}"], number) for number in range(len(fields)) if counts[f"f{number}"]
    )
    changes = {change: counts[change.value] for change in differences.RowChange}
    shown = samples if any(changes.values()) else 0
    return differences.RowChanges(
        added=changes[differences.RowChange.ADDED],
        removed=changes[differences.RowChange.REMOVED],
        changed=changes[differences.RowChange.CHANGED],
        unchanged=counts["rows"] - sum(changes.values()),
        columns=tuple(
            differences.ColumnChange(fields[number].path, -rows) for rows, number in differing
        ),
        samples=tuple(_samples(joined, fields, names, root_key, shown)) if shown else (),
    )


def _numbered(
    sides: Sequence[DataFrame], names: Sequence[str], schema: spark.StructType
) -> list[DataFrame]:
    """Both sides with the number of each row among those of its key that it may be matched with."""
    both = reduce(
        DataFrame.union,
        [
            side.select(
                *names,
                sf.col(name).alias("row"),
                orderable_form(sf.col(name), schema).alias(_CONTENT),
                sf.lit(name).alias(_SIDE),
            )
            for side, name in zip(sides, (_BEFORE, _AFTER), strict=True)
        ],
    )
    equal = Window.partitionBy(*names, _CONTENT)
    pairs = sf.least(
        *(sf.count_if(sf.col(_SIDE) == name).over(equal) for name in (_BEFORE, _AFTER))
    )
    own = Window.partitionBy(*names, _CONTENT, _SIDE).orderBy(sf.lit(0))
    others = Window.partitionBy(*names, _SIDE, _IS_EQUAL).orderBy(_CONTENT)
    numbered = both.withColumn(_IS_EQUAL, sf.row_number().over(own) <= pairs).withColumn(
        _NUMBER, sf.row_number().over(others)
    )
    return [
        numbered.where(sf.col(_SIDE) == name).select(
            *names, _IS_EQUAL, _NUMBER, sf.col("row").alias(name)
        )
        for name in (_BEFORE, _AFTER)
    ]


def _joined(before: DataFrame, after: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Rows with equal keys beside each other, NULL being equal to NULL, and those without."""
    one, other = before.alias("b"), after.alias("a")
    same = [sf.col(f"b.{key}").eqNullSafe(sf.col(f"a.{key}")) for key in keys]
    return one.join(other, reduce(and_, same), "full_outer").select(
        *(sf.coalesce(f"b.{key}", f"a.{key}").alias(key) for key in keys), _BEFORE, _AFTER
    )


def _compared(schema: spark.StructType, above: tuple[str, ...]) -> Iterator[_Compared]:
    for field in schema.fields:
        parts = (*above, field.name)
        yield _Compared(parts, field.dataType)
        if isinstance(field.dataType, spark.StructType):
            yield from _compared(field.dataType, parts)


def _counts(joined: DataFrame, fields: Sequence[_Compared]) -> dict[str, int]:
    is_in_both = sf.col(_BEFORE).isNotNull() & sf.col(_AFTER).isNotNull()
    row = joined.agg(
        sf.count(sf.lit(1)).alias("rows"),
        *(
            sf.count_if(sf.col(_CHANGE) == each.value).alias(each.value)
            for each in differences.RowChange
        ),
        *(
            sf.count_if(is_in_both & field.differs).alias(f"f{number}")
            for number, field in enumerate(fields)
        ),
    ).first()
    assert row is not None  # an aggregation without keys has one row
    return row.asDict()


def _samples(
    joined: DataFrame,
    fields: Sequence[_Compared],
    names: Sequence[str],
    root_key: Sequence[str],
    samples: int,
) -> Iterator[differences.RowSample]:
    of_kind = Window.partitionBy(_CHANGE).orderBy(*names)
    values = sf.array(
        *(
            sf.when(
                field.differs,
                sf.struct(
                    sf.lit(number).alias("field"),
                    field.text(_BEFORE).alias(_BEFORE),
                    field.text(_AFTER).alias(_AFTER),
                ),
            )
            for number, field in enumerate(fields)
        )
    )
    is_changed = sf.col(_CHANGE) == differences.RowChange.CHANGED.value
    rows = (
        joined.where(sf.col(_CHANGE).isNotNull())
        .withColumn(_PLACE, sf.row_number().over(of_kind))
        .where(sf.col(_PLACE) <= samples)
        .select(
            _CHANGE,
            _PLACE,
            *(_cut(sf.col(name).cast("string")).alias(name) for name in names),
            sf.when(is_changed, sf.array_compact(values)).alias("values"),
        )
        .select(
            _CHANGE,
            _PLACE,
            *names,
            sf.slice("values", 1, differences.SAMPLE_COLUMNS).alias("values"),
            (sf.size("values") - differences.SAMPLE_COLUMNS).alias("omitted"),
        )
        .orderBy(_CHANGE, _PLACE)
        .collect()
    )
    return (
        differences.RowSample(
            differences.RowChange(row[_CHANGE]),
            tuple((part, _shown(row[name])) for part, name in zip(root_key, names, strict=True)),
            tuple(
                differences.ChangedValue(
                    fields[value["field"]].path,
                    *(_shown(value[side]) for side in (_BEFORE, _AFTER)),
                )
                for value in row["values"] or ()
            ),
            max(0, row["omitted"] or 0),
        )
        for row in rows
    )


def _shown(value: str | None) -> str | None:
    """A value without the credentials that this process has read, should data contain them."""
    return None if value is None else without_secrets(value)


def _text(column: Column, kind: spark.DataType) -> Column:
    """The value as text, short enough for a person; NULL where it is NULL."""
    match kind:
        case spark.ArrayType() | spark.MapType() | spark.VariantType():
            return _cut(sf.to_json(column, {"ignoreNullFields": "false"}))
        case spark.BinaryType():
            return _cut(sf.hex(column))
    return _cut(column.cast("string"))


def _cut(text: Column) -> Column:
    short = sf.concat(sf.left(text, sf.lit(differences.VALUE_LENGTH)), sf.lit(" ..."))
    return sf.when(sf.length(text) > differences.VALUE_LENGTH, short).otherwise(text)
