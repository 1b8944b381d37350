"""Join keys as expressions, the types that they may have, and rows grouped by them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import cast

from py4j.java_gateway import JavaObject
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import STRING
from snaploom.models.datarelationship import DataRelationship, KeyComponent, KeyField, Normalization
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.policy.sqlfunctions import CHANGES_ROWS
from snaploom.policy.sqltext import depends_on_width
from snaploom.spark.gate import SqlPlace, check_resolved, checked_expression
from snaploom.spark.jvm import jvm_of
from snaploom.spark.types import Found, find_field, matches, to_spark
from snaploom.types.merge import DASHES, WHITE_SPACE

# Types that the data may have where a relationship declares another one.

_DIGITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 19,
}
"""Decimal digits of the largest value of each whole number."""

_EXACT_DIGITS: dict[type[spark.DataType], int] = {spark.FloatType: 7, spark.DoubleType: 15}
"""Digits of whole numbers that binary fractions hold without loss (IEEE 754: 24 and 53 bits)."""


_FLOATS = (spark.FloatType, spark.DoubleType)
_TIMES = (spark.TimestampType, spark.TimestampNTZType)


def is_of_declared_type(field: KeyField, actual: spark.DataType, component: KeyComponent) -> bool:
    """Whether data of a type gives the key that the declared type would give."""
    if _gives_declared_keys(field, actual, component):
        return True
    return first_cast(field, actual, component) is not None


def first_cast(
    field: KeyField, actual: spark.DataType, component: KeyComponent
) -> spark.DataType | None:
    """The declared type, where data is cast to it before anything else; None where it is not."""
    declared = to_spark(field.data_type)
    if component.query is not None:
        is_as_declared = matches(field.data_type, actual)
        is_whole = not is_as_declared and _are_whole(declared, actual)
        if is_whole and depends_on_width(component.query):
            return declared
    else:
        is_as_declared = _gives_declared_keys(field, actual, component)
    return declared if not is_as_declared and holds(declared, actual) else None


def _gives_declared_keys(field: KeyField, actual: spark.DataType, component: KeyComponent) -> bool:
    """Whether data of a type, as it is, gives the key that the declared type would give."""
    if matches(field.data_type, actual):
        return True
    declared = to_spark(field.data_type)
    if component.query is not None:
        # A wider one is cast where it matters (`first_cast`).
        return _are_whole(declared, actual)
    wanted = to_spark(component.cast_data_type)
    if isinstance(wanted, spark.StringType):
        scale, other_scale = _scale(declared), _scale(actual)
        return scale is not None and scale == other_scale
    if isinstance(declared, _FLOATS) and isinstance(actual, _FLOATS):
        return isinstance(wanted, spark.DoubleType)
    if _scale(declared) is None or _scale(actual) is None:
        return False
    # A narrower type has no value that the declared one has not.
    return holds(declared, actual) or holds(wanted, actual)


def _are_whole(one: spark.DataType, other: spark.DataType) -> bool:
    return type(one) in _DIGITS and type(other) in _DIGITS


def _scale(data_type: spark.DataType) -> int | None:
    """Digits after the point of an exact number; None for other types."""
    if isinstance(data_type, spark.DecimalType):
        return data_type.scale
    return 0 if type(data_type) in _DIGITS else None


def holds(wanted: spark.DataType, given: spark.DataType) -> bool:
    """Whether a type has every value of another one, so that a cast to it loses nothing.

    A day is the midnight that begins it, in the session's zone, which is UTC in a run. Text holds
    nothing but text: 7 would not be the 007 that was declared.
    """
    if wanted == given:
        return True
    if isinstance(given, spark.DateType):
        return isinstance(wanted, _TIMES)
    if isinstance(given, spark.FloatType):
        return isinstance(wanted, spark.DoubleType)
    scale = _scale(given)
    if scale is None:
        return False
    whole = given.precision - scale if isinstance(given, spark.DecimalType) else _digits(given)
    if isinstance(wanted, spark.DecimalType):
        return wanted.scale >= scale and wanted.precision - wanted.scale >= whole
    if type(wanted) in _EXACT_DIGITS:
        return scale == 0 and whole <= _EXACT_DIGITS[type(wanted)]
    if scale:
        return False
    if isinstance(given, spark.DecimalType):
        return whole < _digits(wanted)
    return whole <= _digits(wanted)


def _digits(data_type: spark.DataType) -> int:
    return _DIGITS.get(type(data_type), 0)


# Join keys: from a relationship's declaration to expressions over the columns of one source.

_PLAIN_TYPES = (
    spark.BooleanType(),
    spark.ByteType(),
    spark.ShortType(),
    spark.IntegerType(),
    spark.LongType(),
    spark.FloatType(),
    spark.DoubleType(),
    spark.DateType(),
    spark.StringType(),
)
"""Types that need no text to be compared: their values are equal exactly when their text is, but
for the two zeros of floating point numbers, which are equal and have two texts. Decimals of one
precision and scale are such a type too. Not so timestamps (two instants of an autumn night have one
text) and collated text."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One component of a key as an expression over the columns of one source."""

    expression: str
    """SQL over the source's columns."""
    field: Found | None
    """The field, where the expression is nothing but a field."""
    cast: spark.DataType | None
    """Type to cast to; None when the cast is left out."""
    first_casts: tuple[tuple[Found, spark.DataType], ...] = ()
    """Fields whose data is cast to the declared type before anything else reads it."""
    steps: tuple[Normalization, ...] = ()
    """Changes of the text, before the cast."""

    @property
    def is_bare(self) -> bool:
        """Whether the component is a field as it stands in the data."""
        has_change = self.cast is not None or self.first_casts or self.steps
        return self.field is not None and not has_change

    @property
    def identity(self) -> tuple[str, str, str]:
        """Equal for two parts over one source exactly when they are computed in one way."""
        first = ", ".join(f"{field.expression} {to.json()}" for field, to in self.first_casts)
        last = "" if self.cast is None else self.cast.json()
        return self.expression, first, " ".join((*self.steps, last))

    def column(self, session: SparkSession, relationship: str) -> Column:
        """The expression as Spark's, with what `value` raises."""
        return self.compared(session, self.value(session, relationship))

    def compared(self, session: SparkSession, value: Column) -> Column:
        """A value of the component as it is compared: normalised, then cast."""
        if self.steps:
            value = _normalized(
                session, value, None if self.field is None else self.field.data_type, self.steps
            )
        return value if self.cast is None else value.try_cast(self.cast)

    def value(self, session: SparkSession, relationship: str) -> Column:
        """The field, or the query's result, before it is normalised and cast.

        A query is wrapped in a `coalesce` of one argument, which the optimiser removes: inside it
        the analyser refuses what would change the number of rows (generators, aggregates).

        Raises:
            SourceSchemaInvalid: a query has what it may not.
        """
        # What fails is beyond the type's range: an error, not a NULL.
        taken = {
            field.parts: sf.col(field.expression).cast(wanted) for field, wanted in self.first_casts
        }
        if self.field is not None:
            return taken.get(self.field.parts, sf.col(self.field.expression))
        place = _place(relationship)
        checked = checked_expression(session, self.expression, place, columns=taken)
        return sf.coalesce(checked.column)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """The key of one join, as the parent (left) and the child (right) write it."""

    left: tuple[KeyPart, ...]
    right: tuple[KeyPart, ...]


def join_keys(
    tree: JoinTree,
    schemas: Mapping[str, spark.StructType],
    relationships: Mapping[str, DataRelationship],
) -> dict[int, JoinKey]:
    """The key of every join both of whose sides have a schema, by the number of the child.

    `schemas` are those of the included nodes, by field name; every field of a key exists, as
    `snaploom.engine.schemachecks` has proved.
    """
    keys: dict[int, JoinKey] = {}
    for child in tree.joins:
        if child.field_name in schemas and child.parent in schemas:
            parent = tree.node(child.parent)
            relationship = relationships[child.relationship]
            pairs = [
                _pair(left, schemas[parent.field_name], right, schemas[child.field_name])
                for left, right in zip(
                    components(relationship, parent), components(relationship, child), strict=True
                )
            ]
            keys[child.number] = JoinKey(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
    return keys


def components(relationship: DataRelationship, node: JoinNode) -> tuple[KeyComponent, ...]:
    """The key as the source of a node writes it; validation has proved that it has one."""
    key = relationship.spec.join_key_of(node.source)
    assert key is not None
    return key


def _pair(
    left: KeyComponent,
    left_schema: spark.StructType,
    right: KeyComponent,
    right_schema: spark.StructType,
) -> tuple[KeyPart, KeyPart]:
    left_field, right_field = _bare_field(left, left_schema), _bare_field(right, right_schema)
    wanted = to_spark(left.cast_data_type)
    is_as_written = not left.normalize and not right.normalize
    if is_as_written and left_field is not None and right_field is not None:
        taken_as = _taken_as(left, left_field)
        same = taken_as == _taken_as(right, right_field)
        is_plain = taken_as in _PLAIN_TYPES or isinstance(taken_as, spark.DecimalType)
        if same and left.cast_data_type == STRING and is_plain:
            wanted = taken_as
    return (
        _part(left, left_field, left_schema, wanted),
        _part(right, right_field, right_schema, wanted),
    )


def _taken_as(component: KeyComponent, field: Found) -> spark.DataType:
    return first_cast(component.fields_[0], field.data_type, component) or field.data_type


def _part(
    component: KeyComponent,
    field: Found | None,
    schema: spark.StructType,
    wanted: spark.DataType,
) -> KeyPart:
    casts, steps = tuple(_first_casts(component, schema)), component.normalize or ()
    if field is None:
        return KeyPart(component.query or "", None, wanted, casts, steps)
    has_type = wanted == (_TEXT if steps else casts[0][1] if casts else field.data_type)
    return KeyPart(field.expression, field, None if has_type else wanted, casts, steps)


def _first_casts(
    component: KeyComponent, schema: spark.StructType
) -> Iterator[tuple[Found, spark.DataType]]:
    for declared in component.fields_:
        found = find_field(schema, declared.field_name)
        wanted = None if found is None else first_cast(declared, found.data_type, component)
        if found is not None and wanted is not None:
            yield found, wanted


def _bare_field(component: KeyComponent, schema: spark.StructType) -> Found | None:
    return find_field(schema, component.fields_[0].field_name) if component.query is None else None


# Normalisation: the same as `snaploom.types.merge` has in plain Python.

_TEXT = spark.StringType()
_EXACT_BITS: dict[type[spark.DataType], int] = {spark.FloatType: 24, spark.DoubleType: 53}
"""From two to this power on, a binary fraction may stand for several whole numbers."""


def _normalized(
    session: SparkSession,
    value: Column,
    data_type: spark.DataType | None,
    steps: Sequence[Normalization],
) -> Column:
    """The text of a value of a type, None for a query's result, after some steps."""
    if steps[0] is Normalization.INTEGER and data_type is not None:
        value = _whole(value, data_type)
    text = sf.try_validate_utf8(value.cast(_TEXT))
    for step in steps:
        text = _step(session, text, step)
    return sf.nullif(
        text, sf.lit("")
    )  # once, since it doubles the tree; no step fills what is empty


def _whole(value: Column, data_type: spark.DataType) -> Column:
    """A number that has no fraction and is exact; its text has no exponent then."""
    bits = _EXACT_BITS.get(type(data_type))
    if bits is not None:
        is_whole = (sf.abs(value) < sf.lit(float(1 << bits))) & (value == sf.floor(value))
        return sf.when(is_whole, value.cast(spark.LongType()))
    if isinstance(data_type, spark.DecimalType):
        return sf.when(value == sf.floor(value), value.cast(spark.DecimalType(38, 0)))
    return value


def _step(session: SparkSession, text: Column, step: Normalization) -> Column:
    match step:
        case Normalization.TRIM:
            return sf.trim(text, sf.lit(WHITE_SPACE))
        # Spark takes the lower case of an upper case for that of the text, which `ß` has not: the
        # check between them, which finds nothing, keeps it from that.
        case Normalization.UPPER:
            return sf.try_validate_utf8(sf.upper(text))
        case Normalization.LOWER:
            return sf.try_validate_utf8(sf.lower(text))
        case Normalization.STRIP_LEADING_ZEROS:
            return sf.regexp_replace(text, r"\A0+(?=[\s\S])", "")
        case Normalization.INTEGER:
            return sf.regexp_replace(sf.trim(text, sf.lit(WHITE_SPACE)), _WHOLE, "$1$2$3")
        case Normalization.NFC:
            return _composed(session, text)
        case Normalization.REMOVE_DASHES:
            return sf.translate(text, DASHES, "")


_WHOLE = (
    r"\A(?:[+-]?0*(0)|(?:[+]|(-))?0*([1-9][0-9]*))(?:[.]0+)?\z"
    r"|\A[\s\S]*\z"  # anything else, of which no group is kept
)


def _composed(session: SparkSession, text: Column) -> Column:
    """Unicode's form C. Spark has no function for it; it calls Java's, which all executors have."""
    jvm = jvm_of(session)
    catalyst, classic = jvm.org.apache.spark.sql.catalyst, jvm.org.apache.spark.sql.classic
    invoke, invoke_static = (
        catalyst.expressions.objects.Invoke,
        catalyst.expressions.objects.StaticInvoke,
    )

    def class_of(name: str) -> JavaObject:
        return cast(JavaObject, jvm.java.lang.Class.forName(name))

    def object_type(name: str) -> JavaObject:
        return cast(JavaObject, jvm.org.apache.spark.sql.types.ObjectType(class_of(name)))

    def listed(*expressions: JavaObject) -> JavaObject:
        found = jvm.java.util.ArrayList(list(expressions))
        return cast(JavaObject, jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq())

    normalizer, string = "java.text.Normalizer", object_type("java.lang.String")
    form = jvm.java.lang.Enum.valueOf(class_of(f"{normalizer}$Form"), "NFC")
    literal = catalyst.expressions.Literal(form, object_type(f"{normalizer}$Form"))
    # NULL in gives NULL out, and the result depends on nothing but the text.
    how = (listed(), True, True, True)
    plain = classic.ExpressionUtils.expression(text._jc)
    plain = invoke(plain, "toString", string, listed(), *how)
    made = invoke_static(
        class_of(normalizer),
        string,
        "normalize",
        listed(plain, literal),
        *how,
        jvm.scala.Option.empty(),
    )
    own = invoke_static(
        class_of("org.apache.spark.unsafe.types.UTF8String"),
        jvm.org.apache.spark.sql.types.DataTypes.StringType,
        "fromString",
        listed(made),
        *how,
        jvm.scala.Option.empty(),
    )
    return Column(classic.ExpressionUtils.column(own))


def check_keys(made: DataFrame, source: DataFrame, parts: Mapping[str, list[KeyPart]]) -> None:
    """Refuse key expressions that come to more than SQL may.

    `made` is the source's frame with all keys.
    """
    declared = [name for name, ones in parts.items() if any(one.field is None for one in ones)]
    if not declared:
        return
    if any(one.steps for ones in parts.values() for one in ones):
        session = source.sparkSession  # how texts are normalised is our own, and not judged
        queries = ((name, one) for name in declared for one in parts[name] if one.field is None)
        made = source.select(*(one.value(session, name) for name, one in queries))
    check_resolved(made, [source], _place(", DataRelationship/".join(declared)))


def _place(relationship: str) -> SqlPlace:
    return SqlPlace(
        f"DataRelationship/{relationship}",
        "spec.representations[].joinKey[].query",
        SourceSchemaInvalid,
        "an expression of one value a row, of listed functions",
        varying=CHANGES_ROWS,
    )


def refuse_broken_keys(
    frame: DataFrame, node: JoinNode, parts: Mapping[str, list[KeyPart]]
) -> None:
    """Name the key expression that Spark refuses; called once a select with all of them failed."""
    for relationship, expressions in parts.items():
        for part in expressions:
            try:
                frame.select("*", part.column(frame.sparkSession, relationship))
            except AnalysisException as refusal:
                raise SourceSchemaInvalid(
                    f"the join key cannot be evaluated on DataSource/{node.source}",
                    resource=f"DataRelationship/{relationship}",
                    path="spec.representations[].joinKey[]",
                    found=f"{part.expression}: {str(refusal).splitlines()[0]}",
                    expected="an expression of one value a row"
                    + (f" that can be cast to {part.cast.simpleString()}" if part.cast else ""),
                    hint="correct query, fields, normalize or castDataType",
                ) from refusal


# Grouping: the rows of a source that share a key become one array, in an order of their own.


def collect_groups(frame: DataFrame, keys: Sequence[str], packed: str) -> DataFrame:
    """One row a key: the key columns, and a sorted array of the rows, named `packed`."""
    whole = reduce(and_, [sf.col(key).isNotNull() for key in keys])
    array = _sorted_list(sf.col(packed), frame.schema[packed].dataType)
    return frame.where(whole).groupBy(*keys).agg(array.alias(packed))


def _sorted_list(packed: Column, data_type: spark.DataType) -> Column:
    if is_orderable(data_type):
        return sf.sort_array(sf.collect_list(packed))
    ordered = sf.struct(orderable_form(packed, data_type).alias("o"), packed.alias("v"))
    return sf.transform(sf.array_sort(sf.collect_list(ordered), _compare), lambda e: e["v"])


def _compare(left: Column, right: Column) -> Column:
    return sf.when(left["o"] < right["o"], -1).when(left["o"] > right["o"], 1).otherwise(0)


def is_orderable(data_type: spark.DataType) -> bool:
    """Whether Spark can sort values of a type."""
    if isinstance(data_type, spark.StructType):
        return all(is_orderable(field.dataType) for field in data_type.fields)
    if isinstance(data_type, spark.ArrayType):
        return is_orderable(data_type.elementType)
    return not isinstance(data_type, (spark.MapType, spark.VariantType, spark.CalendarIntervalType))


def orderable_form(value: Column, data_type: spark.DataType) -> Column:
    """A value that sorts, and is equal only for equal values: maps become sorted entries."""
    if is_orderable(data_type):
        return value
    if isinstance(data_type, spark.MapType):
        return sf.sort_array(
            sf.transform(
                sf.map_entries(value),
                lambda e: sf.struct(e["key"], orderable_form(e["value"], data_type.valueType)),
            )
        )
    if isinstance(data_type, spark.ArrayType):
        return sf.transform(value, lambda e: orderable_form(e, data_type.elementType))
    if isinstance(data_type, spark.StructType):
        # The first member distinguishes a NULL struct from a struct of NULLs.
        members = [orderable_form(value.getField(f.name), f.dataType) for f in data_type.fields]
        return sf.struct(value.isNull(), *members)
    return value.cast("string")
