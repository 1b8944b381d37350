"""Terms, which are subjects of indexes and of predicates, and definitions of indexes over them.

A term is a column, a nested field or an expression, together with Spark's type of it. Two terms
are the same when key and type are; an index serves a predicate only then (rules S7 and S15).

Values are in Catalyst's internal form, so that nothing depends on how a literal is printed:

| Spark type | value | Arrow type in which it is kept |
|---|---|---|
| boolean | bool | bool |
| tinyint, smallint, int, bigint | int | int8, int16, int32, int64 |
| float, double | float | float32, float64 |
| decimal(p,s) | Decimal | decimal128(p, s) |
| date | int, days since 1970-01-01 | int32 |
| timestamp, timestamp_ntz | int, microseconds since 1970-01-01T00:00:00 | int64 |
| string, binary | bytes (UTF-8 for string) | large_binary |

Everything else (collated strings, char and varchar with padding semantics of their own, intervals,
variant, arrays, maps, whole structs) is kept by no index: `arrow_type` returns None (rule S20).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pyarrow as pa

from snaploom.models.skippingindex import RefreshMode
from snaploom.types.arrow import KEPT
from snaploom.types.schemas import MOST_DIGITS

Value = bool | int | float | Decimal | bytes
"""A value in Catalyst's internal form; never NULL, which predicates express by themselves."""

_DECIMAL = re.compile(r"decimal\(([0-9]{1,3}),\s?(-?[0-9]{1,3})\)")


def arrow_type(data_type: str) -> pa.DataType | None:
    """The Arrow type in which values of a Spark type (its `catalogString`) are kept, or None."""
    match = _DECIMAL.fullmatch(data_type)
    if match is not None:
        precision, scale = int(match[1]), int(match[2])
        is_possible = 1 <= precision <= MOST_DIGITS and abs(scale) <= MOST_DIGITS
        return pa.decimal128(precision, scale) if is_possible else None
    return KEPT.get(data_type)


@dataclass(frozen=True)
class Term:
    """Subject of an index: a column, a nested field or an expression."""

    key: str
    """Identity: canonical JSON; a list of names for a column or nested field (`["a","b"]`), the
    optimizer rule's serialised expression otherwise."""
    data_type: str
    """Spark's type, as its `catalogString`: `bigint`, `decimal(10,2)`, `string`."""
    label: str = field(default="", compare=False)
    """Text as people write it: `a.b`, `lower(c)`."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names from the top-level column to the field; None for an expression."""
        parts = json.loads(self.key)
        is_path = isinstance(parts, list) and bool(parts) and isinstance(parts[0], str)
        return tuple(parts) if is_path else None

    @property
    def is_outdated(self) -> bool:
        """Whether another expression may have its key, as in the first form of keys."""
        return self.names is None and json.loads(self.key)[0] != _EXPRESSION


def is_sound(term: Term) -> bool:
    """Whether a parsed term has a well-formed key and a type that can be kept."""
    try:
        parts = json.loads(term.key)
    except (ValueError, RecursionError):
        return False
    if not isinstance(parts, list) or not parts:
        return False
    is_expression = parts[0] in (_EXPRESSION, _EXPRESSION_BEFORE) and len(parts) == 2
    is_path = all(isinstance(part, str) for part in parts)
    return (is_expression or is_path) and arrow_type(term.data_type) is not None


_EXPRESSION = {"expression": 2}
"""First element of an expression's key, which no column name can be: the version of the form."""
_EXPRESSION_BEFORE = {"expression": True}
"""That of the first version, which did not write arrays, maps, structs and intervals in full."""


def column_term(names: tuple[str, ...], data_type: str) -> Term:
    """Term of a column (`("a",)`) or of a nested field (`("a", "b")`)."""
    key = json.dumps(list(names), ensure_ascii=False, separators=(",", ":"))
    return Term(key=key, data_type=data_type, label=".".join(names))


def expression_term(serialised: object, data_type: str, label: str) -> Term:
    """Term of an expression, from the JSON value that the optimizer rule serialises it to."""
    key = json.dumps([_EXPRESSION, serialised], ensure_ascii=False, separators=(",", ":"))
    return Term(key=key, data_type=data_type, label=label)


# Definition of an index, as it is declared and kept: target, reader, indexes.


@dataclass(frozen=True)
class Target:
    """Files that an index is about."""

    uri: str
    """Location: a Hadoop path with scheme and without a trailing slash, such as
    `file:/data/flights` (`Path.toString()`); for a table, its location. Its SHA-256 names the
    folder of the index (rule S24)."""
    table: str = ""
    """`catalog.database.table` when the target is a table; else empty."""
    format: str = ""
    """Spark's short name of the format, such as `parquet`."""
    options: tuple[tuple[str, str], ...] = ()
    """Reader options in order of their names."""

    @property
    def label(self) -> str:
        """The table, or the location of files that are none."""
        return self.table or self.uri


@dataclass(frozen=True)
class ReaderFingerprint:
    """Facts that change how a reader interprets the same bytes (rule S6); compared as a whole."""

    format: str
    """Spark's short name of the format."""
    options: tuple[tuple[str, str], ...] = ()
    """Reader options that matter, lower-case names, in order."""
    settings: tuple[tuple[str, str], ...] = ()
    """Session settings that matter for the format (time zone, rebase modes ...), in order."""
    schema: str = ""
    """The whole data schema as JSON, where reading one column depends on the others (CSV, JSON);
    else empty: columns are compared one by one, by their term's type."""
    evaluation: tuple[tuple[str, str], ...] = ()
    """Surroundings that may change values of expressions: Spark's version, time zones, and
    every SQL setting that differs from Spark's default, in order; empty where nothing is kept
    about an expression."""

    def for_indexes(self, indexes: Iterable[IndexDefinition]) -> ReaderFingerprint:
        """The part on which the rows of some indexes depend."""
        has_expression = any(term.names is None for index in indexes for term in index.terms)
        return self if has_expression else replace(self, evaluation=())


@dataclass(frozen=True)
class IndexDefinition:
    """One index: a type over terms."""

    index_id: str
    """Names its columns in the store; unique for ever within the skipping index: `i1`, `i2` ..."""
    type: str
    """`MIN_MAX`, `VALUE_SET`, `BLOOM_FILTER`, `PARTITION`, or a registered type."""
    terms: tuple[Term, ...]
    """Terms of the index; one term for the built-in types."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Parameters by name, in order of names."""
    enabled: bool = True
    """Whether queries use it; it is kept up to date all the same."""
    key_label: str = ""
    """Key with which its columns are encrypted; empty for none."""

    @property
    def term(self) -> Term:
        """The only term of a type that has one."""
        return self.terms[0]

    @property
    def is_outdated(self) -> bool:
        """Whether an expression of it has a key that another expression may share."""
        return any(term.is_outdated for term in self.terms)

    def parameter(self, name: str, default: str) -> str:
        return dict(self.parameters).get(name, default)

    @property
    def label(self) -> str:
        """Notation for people: `MIN_MAX(price)`."""
        return f"{self.type}({', '.join(term.label for term in self.terms)})"


@dataclass(frozen=True)
class SkippingDefinition:
    """One skipping index: everything that was declared, resolved against the target."""

    target: Target
    fingerprint: ReaderFingerprint
    indexes: tuple[IndexDefinition, ...]
    where: str = ""
    """SQL over partition columns and `_metadata.file_path` that chooses files (rule S23)."""
    partition_columns: tuple[tuple[str, str], ...] = ()
    """Partition columns of the target: name and Spark type, in order."""
    enabled: bool = True
    mode: RefreshMode = RefreshMode.AUTO
    owner: str = ""
    """`SkippingIndex/name` of the resource that owns it (rule S26); else empty."""
    form: str = "NATIVE"
    """`NATIVE`, `XSKIPPER`, or Flint's `OPENSEARCH`."""
    footer_key_label: str = ""
    """Key of the footers, when the index is encrypted."""
    plaintext_footer: bool = False
    """Whether footers stay readable without a key."""
    properties: tuple[tuple[str, str], ...] = field(default=())
    """Other declared options (`WITH (...)`), kept and shown."""

    @property
    def why_outdated(self) -> str:
        """Indexes that no query uses before they are rebuilt, and how; empty if there are none."""
        labels = ", ".join(index.label for index in self.indexes if index.is_outdated)
        where = self.target.label
        return labels and (
            f"{labels}: an older Snaploom did not distinguish all expressions, so no query uses "
            f"it: build it again with `snaploom index refresh {where}`"
        )
