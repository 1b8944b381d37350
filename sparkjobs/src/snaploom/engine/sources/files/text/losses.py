"""Losses of a text as a value of a declared type, as expressions of Spark (decision 0043).

Spark reads 1.239 as a `decimal(3,2)` of 1.24, 2^53 + 1 as a `double` of 2^53, and the time of day
out of a `date`, whatever the mode. Here a text is compared with what becomes of it, digit by digit.
Texts that are no value of the type at all are the reader's to refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

_NUMBER = r"^[+-]?([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,9}))?$"
_LOW = 2.0**53
"""Up to which a `double` holds every whole number: larger ones are taken apart here, exactly."""
_HIGH = 2.0**115
"""Beyond it a number has more digits than a `decimal`, and is compared as it is printed."""
_BEYOND_MICROSECONDS = r"\.[0-9]{6}[0-9]*[1-9]"
_ONLY_TIME = r"^T?[0-9]{1,2}:"
_DAY = r"^[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}([T ]+0{1,2}:00(:00(\.0*)?)?Z?)?$"
_SHORT = {
    "double": r"^[+-]?[0-9]{1,9}(\.[0-9]{1,6})?$",
    "float": r"^[+-]?[0-9]{1,4}(\.[0-9]{1,2})?$",
}
"""Numbers that have no more digits than `_DIGITS`, which are most."""
_DIGITS = {"double": 15, "float": 6}
"""Digits of a number that come back from the type, wherever the point is."""
_BEYOND_CALENDAR = r"^[+-]?[0-9]{13,}(\.[0-9]*)?$"
"""Milliseconds since 1970 that Spark takes for seconds, thousands of years later."""
_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)


@dataclass(frozen=True, slots=True)
class Writing:
    """How a source declares that values are written."""

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
            )
        case spark.DoubleType() | spark.FloatType():
            name = data_type.simpleString()
            expected = f"a number whose digits before the point {name} holds"
            return TextLoss(
                expected,
                is_lost=lambda text: _changes_as_binary(text, name),
                is_suspect=lambda text: _is_printed_otherwise(text, name),
            )
        case spark.TimestampType() | spark.TimestampNTZType():
            wrong = [_BEYOND_MICROSECONDS, _BEYOND_CALENDAR]
            if not writing.has_timestamp_format:
                wrong.append(_ONLY_TIME)
            expected = (
                "a day and a time with at most 6 digits after the second, or, as a number of JSON, "
                "seconds since 1970 up to the year 9999"
            )
            return _simple(expected, lambda text: sf.trim(text).rlike("|".join(wrong)))
        case spark.DateType() if not writing.has_date_format:
            expected = "a day such as 2024-05-01, without a time of day"
            return _simple(expected, lambda text: ~sf.trim(text).rlike(_DAY))
    if writing.is_inferred and isinstance(data_type, _WHOLE):
        expected = "a number that does not begin with 0"
        return _simple(expected, lambda text: sf.trim(text).rlike("^[+-]?0[0-9]"))
    return None


def _simple(expected: str, is_lost: Callable[[Column], Column]) -> TextLoss:
    return TextLoss(expected, is_lost, is_lost)


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
    return ~text.rlike(_SHORT[name]) & narrow.isNotNull() & (narrow.cast("string") != text)


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
    is_short = text.rlike(_SHORT[name])
    return ~is_short & (digits.all != "") & value.isNotNull() & changes
