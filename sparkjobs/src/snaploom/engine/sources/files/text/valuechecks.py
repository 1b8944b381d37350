"""Values of CSV, JSON and XML that reading would change, found before it (decision 0043).

Where a column has a type that can change a text, records are read once more, with texts in place of
such types and by the same options, and each text is compared with what becomes of it. An element of
XML that stands several times where one value is declared loses all but the last: so XML is read
with arrays in place of single values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.engine.sources.files.text.csvdialect import default_options, dialect_of
from snaploom.engine.sources.files.text.csvlines import lines_of
from snaploom.engine.sources.files.text.lines import text_lines, with_numbers
from snaploom.engine.sources.files.text.losses import TextLoss, Writing, text_loss
from snaploom.errors import SourceNotReadable
from snaploom.models.datasource import HdfsLike

CHECKED_FORMATS = frozenset({"csv", "json", "xml"})
"""Formats whose values are text."""
LONGEST_SHOWN = 80
"""Characters of a value that a message shows: enough to find it."""
_ONCE = "an element that stands once in its record"

_Test = Callable[[TextLoss], Callable[[Column], Column]]
"""Which test of a loss a check applies to a text."""


@dataclass(frozen=True, slots=True)
class _Check:
    """A field, and how to find a text in it that would change."""

    path: str
    expected: str
    bad: Callable[[Column], Column]
    """Such a text of a value of the field; NULL for none."""


@dataclass(frozen=True)
class ValueChecks:
    """The checks of one source's values."""

    spark: SparkSession
    resource: str
    """`Kind/name` of the source."""
    declared: HdfsLike

    @property
    def _format(self) -> str:
        return self.declared.format.lower()

    @property
    def _given(self) -> Mapping[str, str]:
        return {name.casefold(): value for name, value in self.declared.format_options.items()}

    @property
    def _is_strict(self) -> bool:
        is_checked = self._format in CHECKED_FORMATS and "singlevariantcolumn" not in self._given
        return is_checked and self._given.get("mode", "FAILFAST").upper() == "FAILFAST"

    def texts(self, schema: spark_types.StructType) -> spark_types.StructType | None:
        """The schema to read texts with; None where no value can change."""
        if not self._is_strict or not any(self._checks(schema, _is_lost)):
            return None
        texts = self._as_texts(schema)
        assert isinstance(texts, spark_types.StructType)  # as `schema` is one
        return texts

    def check(
        self,
        texts: DataFrame,
        file_of_row: Column,
        schema: spark_types.StructType,
        paths: Sequence[str],
    ) -> None:
        """Refuse values that reading would change.

        `texts` has the records, read with the schema of `texts`; `file_of_row` names files as
        `FileSet.file_of_row`.

        Raises:
            SourceNotReadable: naming file, field and value, and the line where the format has any.
        """
        # Spark knows the file of a row only next to the scan.
        records = texts.select(file_of_row.alias("file"), sf.struct("*").alias("record"))
        # The whole test of a number has a long plan (27 KB a column), which few values need.
        if _first_found(records, tuple(self._checks(schema, _is_suspect))) is None:
            return
        checks = tuple(self._checks(schema, _is_lost))
        row = _first_found(records, checks)
        if row is None:
            return
        check, text = checks[row["place"]], row["text"]
        line, file = self._line(texts.schema, check, text, row["file"], paths), unquote(row["file"])
        value = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
        raise SourceNotReadable(
            f"a value of {check.path} would change as it is read",
            resource=self.resource,
            path="spec.hdfsLike.schemaFields",
            found=f"{value} in {f'line {line} of ' if line else ''}{file}",
            expected=check.expected,
            hint="declare a type that holds it (decimal of more digits, timestamp, string, array), "
            "or correct the file; formatOptions mode: PERMISSIVE reads the value as Spark does",
        )

    def _line(
        self,
        texts: spark_types.StructType,
        check: _Check,
        text: str,
        file: str,
        paths: Sequence[str],
    ) -> int | None:
        """The number of the first line that a check finds; None where records are not lines."""
        lines = self._records(texts, paths)
        if lines is None:
            return None
        number = sf.col("number")
        # A URL with local ones in one form, that of `FileSet.file_of_row`.
        url = sf.col("file")
        of_file = lines.where(sf.regexp_replace(url, "^file:/+", "file:/") == file)
        # As a single text, a line of JSON has its long numbers in another form.
        parsed = sf.min(sf.when(check.bad(sf.col("record")).isNotNull(), number))
        row = of_file.agg(sf.coalesce(parsed, sf.min(sf.when(_has(text), number)))).head()
        return None if row is None else row[0]

    def _records(self, texts: spark_types.StructType, paths: Sequence[str]) -> DataFrame | None:
        """Numbered lines, each as the `record` that it is; None where records are not lines."""
        options = dict(self.declared.format_options)
        if self._format == "json" and self._given.get("multiline", "").lower() != "true":
            lines = text_lines(self.spark, paths, options, self._given.get("linesep"))
            lax = {**options, "mode": "PERMISSIVE"}
            return with_numbers(lines).withColumn("record", sf.from_json("line", texts, lax))
        dialect = dialect_of(options) if self._format == "csv" else None
        if dialect is None:
            return None
        lines = with_numbers(lines_of(self.spark, paths, dialect, options))
        lax = {**default_options(options), **options, "mode": "PERMISSIVE"}
        record = sf.from_csv("line", texts.toDDL(), lax)
        is_header = (sf.col("number") == 1) & (self._given.get("header", "").lower() == "true")
        return lines.where(~is_header).withColumn("record", record)

    @property
    def _writing(self) -> Writing:
        given = self._given
        return Writing(
            is_inferred=self.declared.schema_fields is None,
            has_date_format="dateformat" in given,
            has_timestamp_format=bool({"timestampformat", "timestampntzformat"} & given.keys()),
            has_locale="locale" in given,
        )

    def _loss(self, data_type: spark_types.DataType) -> TextLoss | None:
        return text_loss(data_type, self._writing)

    def _is_element(self, name: str) -> bool:
        """Whether a field of XML is an element, which can stand several times."""
        is_xml = self._format == "xml"
        value, attribute = self._given.get("valuetag"), self._given.get("attributeprefix")
        is_value = name == ("_VALUE" if value is None else value)
        is_attribute = name.startswith(attribute or "_") and attribute != ""
        return is_xml and not is_value and not is_attribute

    def _as_texts(self, data_type: spark_types.DataType) -> spark_types.DataType:
        """A type with texts in place of the types that can change them."""
        match data_type:
            case spark_types.StructType():
                return spark_types.StructType(
                    [self._field_as_text(field) for field in data_type.fields]
                )
            case spark_types.ArrayType():
                return spark_types.ArrayType(self._as_texts(data_type.elementType))
            case spark_types.MapType():
                return spark_types.MapType(data_type.keyType, self._as_texts(data_type.valueType))
        return data_type if self._loss(data_type) is None else spark_types.StringType()

    def _field_as_text(self, field: spark_types.StructField) -> spark_types.StructField:
        inner = self._as_texts(field.dataType)
        if self._is_single(field):
            inner = spark_types.ArrayType(inner)
        return spark_types.StructField(field.name, inner)

    def _is_single(self, field: spark_types.StructField) -> bool:
        """Whether a field of XML takes one of the elements of its name."""
        is_many = isinstance(
            field.dataType, spark_types.ArrayType | spark_types.MapType | spark_types.VariantType
        )
        return self._is_element(field.name) and not is_many

    def _checks(
        self, data_type: spark_types.DataType, test: _Test, path: str = ""
    ) -> Iterator[_Check]:
        match data_type:
            case spark_types.StructType():
                for field in data_type.fields:
                    inner = f"{path}.{field.name}" if path else field.name
                    for check in self._of_field(field, test, inner):
                        yield _within(check, field.name)
            case spark_types.ArrayType():
                for check in self._checks(data_type.elementType, test, f"{path}[]"):
                    yield _Check(check.path, check.expected, _any_of(check.bad))
            case spark_types.MapType():
                for check in self._checks(data_type.valueType, test, f"{path}{{value}}"):
                    bad = _any_of(check.bad)
                    yield _Check(check.path, check.expected, _of_values(bad))
            case _:
                loss = self._loss(data_type)
                if loss is not None:
                    yield _Check(path, loss.expected, _where(test(loss)))

    def _of_field(self, field: spark_types.StructField, test: _Test, path: str) -> Iterator[_Check]:
        checks = self._checks(field.dataType, test, path)
        if not self._is_single(field):
            yield from checks
            return
        yield _Check(path, _ONCE, _several)
        for check in checks:
            yield _Check(check.path, check.expected, _any_of(check.bad))


def _is_lost(loss: TextLoss) -> Callable[[Column], Column]:
    return loss.is_lost


def _is_suspect(loss: TextLoss) -> Callable[[Column], Column]:
    return loss.is_suspect


def _first_found(records: DataFrame, checks: Sequence[_Check]) -> Row | None:
    """File, place and text of a value that a check finds; None where none does."""
    # Of the column `record`: the place of the first check that finds a text, with the text.
    found = []
    for place, check in enumerate(checks):
        text = check.bad(sf.col("record"))
        pair = sf.struct(sf.lit(place).alias("place"), text.cast("string").alias("text"))
        found.append(sf.when(text.isNotNull(), pair))
    bad = records.select("file", sf.coalesce(*found).alias("bad"))
    return bad.where(sf.col("bad").isNotNull()).select("file", "bad.place", "bad.text").head()


def _where(is_lost: Callable[[Column], Column]) -> Callable[[Column], Column]:
    return lambda text: sf.when(is_lost(text), text)


def _within(check: _Check, name: str) -> _Check:
    return _Check(check.path, check.expected, lambda record: check.bad(record.getField(name)))


def _any_of(bad: Callable[[Column], Column]) -> Callable[[Column], Column]:
    """The first text that is found in the elements of an array."""

    def first(elements: Column) -> Column:
        found = sf.filter(sf.transform(elements, bad), lambda text: text.isNotNull())
        return sf.get(found, sf.lit(0))

    return first


def _of_values(bad: Callable[[Column], Column]) -> Callable[[Column], Column]:
    return lambda entries: bad(sf.map_values(entries))


def _several(elements: Column) -> Column:
    """All elements of a name as one text, where there are several."""
    return sf.when(sf.size(elements) > 1, sf.to_json(sf.struct(elements)))


def _has(text: str) -> Column:
    return sf.col("line").contains(sf.lit(text))
