"""The definition of an index: target, readers and terms; and index types by entry points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.core.terms import Term

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
        """Value of a parameter, or the default."""
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
    """Whether queries use any of it."""
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
        where = self.target.table or self.target.uri
        return labels and (
            f"{labels}: an older Snaploom did not distinguish all expressions, so no query uses "
            f"it: build it again with `snaploom index refresh {where}`"
        )
