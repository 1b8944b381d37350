"""Values of CSV, JSON and XML that reading would change, found beforehand (decision 0043)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark
from pyspark.sql import types as spark_types

from snaploom.errors import SourceNotReadable
from snaploom.models.datasource import HdfsLike
from snaploom.policy.fileformats import FileFormat, format_of
from snaploom.sources.files.csv import default_options, dialect_of, lines_of
from snaploom.sources.files.globs import escape_glob
from snaploom.sources.files.records import text_lines, with_numbers

# Losses of a text as a value of a declared type, as expressions of Spark (decision 0043).

_NUMBER = r"^[+-]?([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,9}))?$"
_LOW = 2.0**53
"""Up to which a `double` holds every whole number: larger ones are taken apart here, exactly."""
_HIGH = 2.0**115
"""Beyond it a number has more digits than a `decimal`, and is compared as it is printed."""
_BEYOND_MICROSECONDS = r"\.[0-9]{6}[0-9]*[1-9]"
_ONLY_TIME = r"^T?[0-9]{1,2}:"
_DAY = r"[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}([T ]+0{1,2}:00(:00(\.0*)?)?Z?)?"
_TIME = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_INFERRED = "[+-]?(0|[1-9][0-9]*)"
_SHORT = {
    "double": (
        r"[+-]?(?:[0-9]{1,9}(?:\.(?!999999)[0-9]{0,100})?"
        r"|[0-9](?:\.[0-9]{0,100})?[eE]-(?:0[2-9]|[1-9][0-9]))"
    ),
    "float": r"[+-]?[0-9]{1,4}(\.(?!999)[0-9]{0,30})?",
}
"""Numbers of few digits before the point, and not so close below a whole number that they could
become it: most are such."""
_DIGITS = {"double": 15, "float": 6}
"""Digits of a number that come back from the type, wherever the point is."""
_BEYOND_CALENDAR = r"^[+-]?[0-9]{13,}(\.[0-9]*)?$"
"""Milliseconds since 1970 that Spark takes for seconds, thousands of years later."""
_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)


@dataclass(frozen=True, slots=True)
class Writing:
    """Declared form of values of a source."""

    is_inferred: bool
    """Whether Spark found the types in the data, so that none was declared."""
    has_date_format: bool
    has_timestamp_format: bool
    has_locale: bool
    """Whether commas and points may stand for each other."""


@dataclass(frozen=True, slots=True)
class TextLoss:
    """A way in which a text does not come through."""

    expected: str
    """The texts that keep their value."""
    is_lost: Callable[[Column], Column]
    """Whether it happens to a text; NULL counts as no."""
    is_suspect: Callable[[Column], Column]
    """A short test that every such text passes, and most others do not; NULL counts as no."""
    harmless: str
    """A regular expression, of Java, of most texts to which it does not happen."""


def text_loss(data_type: spark.DataType, writing: Writing) -> TextLoss | None:
    """The loss of a text as a value of a type without parts; None where all of it is kept."""
    match data_type:
        case spark.DecimalType() if not writing.has_locale:
            scale = data_type.scale
            expected = f"a number with at most {scale} digits after the point"
            short = rf"^[+-]?[0-9,]*(\.[0-9]{{0,{scale}}})?$"
            return TextLoss(
                expected,
                is_lost=lambda text: _has_more_digits(text, scale),
                is_suspect=lambda text: ~sf.trim(text).rlike(short),
                harmless=rf"[+-]?[0-9]+(\.[0-9]{{0,{scale}}})?",
            )
        case spark.DoubleType() | spark.FloatType():
            name = data_type.simpleString()
            expected = f"a number whose digits before the point {name} holds"
            return TextLoss(
                expected,
                is_lost=lambda text: _changes_as_binary(text, name),
                is_suspect=lambda text: _is_printed_otherwise(text, name),
                harmless=_SHORT[name],
            )
        case spark.TimestampType() | spark.TimestampNTZType():
            wrong = [_BEYOND_MICROSECONDS, _BEYOND_CALENDAR]
            if not writing.has_timestamp_format:
                wrong.append(_ONLY_TIME)
            expected = (
                "a day and a time with at most 6 digits after the second, or, as a number of JSON, "
                "seconds since 1970 up to the year 9999"
            )
            return _simple(expected, lambda text: sf.trim(text).rlike("|".join(wrong)), _TIME)
        case spark.DateType() if not writing.has_date_format:
            expected = "a day such as 2024-05-01, without a time of day"
            return _simple(expected, lambda text: ~sf.trim(text).rlike(f"^{_DAY}$"), _DAY)
    if writing.is_inferred and isinstance(data_type, _WHOLE):
        expected = "a number that does not begin with 0"
        return _simple(expected, lambda text: sf.trim(text).rlike("^[+-]?0[0-9]"), _INFERRED)
    return None


def _simple(expected: str, is_lost: Callable[[Column], Column], harmless: str) -> TextLoss:
    return TextLoss(expected, is_lost, is_lost, harmless)


def _has_more_digits(text: Column, scale: int) -> Column:
    # Thousands may have commas between them.
    return _Digits(sf.replace(sf.trim(text), sf.lit(","), sf.lit(""))).fraction > scale


class _Digits:
    """The digits of a number as it is written, and where its point is."""

    def __init__(self, text: Column) -> None:
        """Build expressions only; they give NULL or nothing for a text that is no number."""
        before = sf.regexp_extract(text, _NUMBER, 1)
        after = sf.regexp_extract(text, _NUMBER, 2)
        exponent = sf.regexp_extract(text, _NUMBER, 3)
        shift = sf.when(exponent == "", 0).otherwise(exponent.try_cast("int"))
        written = sf.concat(before, after)
        significant = sf.regexp_replace(written, "^0+", "")
        self.point = sf.length(before) + shift - sf.length(written) + sf.length(significant)
        """Digits before the point, without leading zeros; 0 and less for a fraction."""
        self.all = sf.regexp_replace(significant, "0+$", "")
        """All digits but zeros at either end; empty for 0 and for what is no number."""
        self.fraction = sf.when(self.all == "", 0).otherwise(sf.length(self.all) - self.point)
        """Digits after the point."""
        padded = sf.rpad(sf.substring(self.all, sf.lit(1), self.point), self.point, "0")
        self.whole = (
            sf.when(self.point <= 0, sf.lit(0).cast("decimal(38,0)"))
            .when(self.point <= 38, padded.try_cast("decimal(38,0)"))
        )  # fmt: skip
        """The number without its fraction; NULL beyond 38 digits."""


def _is_printed_otherwise(text: Column, name: str) -> Column:
    """Whether a number has many digits and another text than Spark's, as most writers print it."""
    text = sf.trim(text)
    narrow = text.try_cast(name)
    return ~text.rlike(f"^{_SHORT[name]}$") & narrow.isNotNull() & (narrow.cast("string") != text)


def _changes_as_binary(text: Column, name: str) -> Column:
    """Whether digits before the point change, or the number becomes 0 or infinite."""
    text = sf.trim(text)
    digits = _Digits(text)
    narrow = text.try_cast(name)
    value = sf.abs(narrow.cast("double"))
    high = sf.floor(value / _LOW).try_cast("decimal(20,0)")
    low = (value - sf.floor(value / _LOW) * _LOW).try_cast("bigint").cast("decimal(19,0)")
    held = (high * sf.lit(int(_LOW)).cast("decimal(16,0)") + low).try_cast("decimal(38,0)")
    # So few digits identify a binary number, and so do those it is printed with.
    printed = _Digits(narrow.cast("string"))
    is_printed = (printed.all == digits.all) & (printed.point == digits.point)
    is_same = is_printed | (sf.length(digits.all) <= _DIGITS[name])
    changes = (
        sf.when(value == float("inf"), True)
        .when(value == 0, True)
        .when(value >= _HIGH, ~is_same)
        .otherwise(~is_same & ~held.eqNullSafe(digits.whole))
    )  # fmt: skip
    # Most numbers have so few digits that none of them can change.
    is_short = text.rlike(f"^{_SHORT[name]}$")
    return ~is_short & (digits.all != "") & value.isNotNull() & changes


# Values of CSV, JSON and XML that reading would change, found before it (decision 0043).

LONGEST_SHOWN = 80
"""Characters of a value that a message shows: enough to find it."""
_ONCE = "an element that stands once in its record"

Records = Callable[[str, spark_types.StructType], tuple[str, spark_types.StructType]]
"""From the URL of a file and wanted columns to its URI, and the columns of its records in their
order, with the names of the wanted ones."""
_Test = Callable[[TextLoss], Callable[[Column], Column]]
"""Test for a loss that a check applies to a text."""


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
    declared: HdfsLike

    @property
    def _format(self) -> FileFormat:
        return format_of(self.declared.format)

    @property
    def _given(self) -> Mapping[str, str]:
        return {name.casefold(): value for name, value in self.declared.format_options.items()}

    @property
    def _is_strict(self) -> bool:
        is_checked = self._format.has_text_values and "singlevariantcolumn" not in self._given
        return is_checked and self._given.get("mode", "FAILFAST").upper() == "FAILFAST"

    def texts(self, schema: spark_types.StructType) -> spark_types.StructType | None:
        """The schema to read texts with; None where no value can change."""
        if not self._is_strict or not any(self._checks(schema, _is_lost)):
            return None
        texts = self._as_texts(schema)
        assert isinstance(texts, spark_types.StructType)  # as `schema` is one
        return texts

    def harmless(self, data_type: spark_types.DataType) -> str | None:
        """A regular expression, of Java, of texts that keep their value; None where all do."""
        loss = self._loss(data_type)
        return None if loss is None else loss.harmless

    def check(
        self,
        texts: DataFrame,
        file_of_row: Column,
        schema: spark_types.StructType,
        records: Records,
    ) -> None:
        """Refuse values that reading would change.

        `texts` has the records, read with the schema of `texts`; `file_of_row` names files as
        `FileSet.file_of_row`.
        """
        # Spark knows the file of a row only next to the scan.
        found = texts.select(file_of_row.alias("file"), sf.struct("*").alias("record"))
        # The whole test of a number has a long plan (27 KB a column), which few values need.
        if _first_found(found, tuple(self._checks(schema, lambda loss: loss.is_suspect))) is None:
            return
        checks = tuple(self._checks(schema, _is_lost))
        row = _first_found(found, checks)
        if row is None:
            return
        check, text = checks[row["place"]], row["text"]
        line = self._line(*records(row["file"], texts.schema), check, text)
        file = unquote(row["file"])
        raise SourceNotReadable(
            f"a value of {check.path} would change as it is read",
            resource=self.resource,
            path="spec.hdfsLike.schemaFields",
            found=f"{cut(text)} in {f'line {line} of ' if line else ''}{file}",
            expected=check.expected,
            hint="declare a type that holds it (decimal of more digits, timestamp, string, array), "
            "or correct the file; formatOptions mode: PERMISSIVE reads the value as Spark does",
        )

    def line_of(self, uri: str, record: str) -> int | None:
        """The number of the first line with which a record begins; None where none has one."""
        lines = self._lines(uri)
        if lines is None:
            return None
        line = sf.regexp_replace("line", "\\r$", "")
        text = record.partition("\n")[0].removesuffix("\r")
        row = lines.where(line == text).agg(sf.min("number")).head()
        return None if row is None else row[0]

    def parsed(self, record: Column, wanted: spark_types.StructType) -> Column:
        """The text of a record as its columns; NULL for what does not fit."""
        lax = {**self.declared.format_options, "mode": "PERMISSIVE"}
        if self._format.has_headers:
            options = {**default_options(self.declared.format_options), **lax}
            return sf.from_csv(record, wanted.toDDL(), options)
        return sf.from_json(record, wanted, lax)

    def _line(
        self, uri: str, texts: spark_types.StructType, check: _Check, text: str
    ) -> int | None:
        """The number of the first line that a check finds; None where records are not lines."""
        lines = self._lines(uri)
        if lines is None:
            return None
        number = sf.col("number")
        # As a single text, a line of JSON has its long numbers in another form.
        bad = check.bad(self.parsed(sf.col("line"), texts))
        parsed = sf.min(sf.when(bad.isNotNull(), number))
        row = lines.agg(
            sf.coalesce(parsed, sf.min(sf.when(sf.col("line").contains(sf.lit(text)), number)))
        ).head()
        return None if row is None else row[0]

    def _lines(self, uri: str) -> DataFrame | None:
        """Numbered lines of a file, without a header; None where records are not lines."""
        paths, options = [escape_glob(uri)], self.declared.format_options
        is_lines = self._given.get("multiline", "").lower() != "true"
        if is_lines and self._format.has_named_values and not self._format.has_elements:
            return with_numbers(text_lines(self.spark, paths, options, self._given.get("linesep")))
        dialect = dialect_of(options) if self._format.has_headers else None
        if dialect is None:
            return None
        lines = with_numbers(lines_of(self.spark, paths, dialect, options))
        is_header = (sf.col("number") == 1) & (self._given.get("header", "").lower() == "true")
        return lines.where(~is_header)

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
        value, attribute = self._given.get("valuetag"), self._given.get("attributeprefix")
        is_value = name == ("_VALUE" if value is None else value)
        is_attribute = name.startswith(attribute or "_") and attribute != ""
        return self._format.has_elements and not is_value and not is_attribute

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


def cut(text: str) -> str:
    """The beginning of a value, as far as a message shows it."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _is_lost(loss: TextLoss) -> Callable[[Column], Column]:
    return loss.is_lost


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
