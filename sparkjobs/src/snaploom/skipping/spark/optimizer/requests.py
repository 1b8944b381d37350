"""The optimizer rule, which asks before a query reads files, and its requests.

The rule is Java (`java/SkippingRule.java`) and decides nothing: for each filtered relation of files
it sends one request and drops what the answer lists. A request is a text: a header (JSON) in the
first line, lengths and modification times in the second and third, then one path a line. The header
names the listing; files that were sent before under that name are not sent again. A failure keeps
every file, is counted, and never reaches the query.

Settings of a session, read with every query:

| setting | default | meaning |
|---|---|---|
| `spark.snaploom.skipping.enabled` | true | false leaves plans as they are |
| `spark.snaploom.skipping.join.enabled` | true | use keys of a join's other side |
| `spark.snaploom.skipping.join.keys` | 10000 | how many different keys at most |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import pyarrow as pa
from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from snaploom.skipping.core import filetable
from snaploom.skipping.core.definition import (
    IndexDefinition,
    SkippingDefinition,
    Term,
    arrow_type,
    column_term,
)
from snaploom.skipping.formats.parquetfiles import SETTING as KEY_SERVICE
from snaploom.skipping.indexes import valueset
from snaploom.skipping.indexes.base import Evaluation
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.spark.relations.expressions import Literal, literal
from snaploom.skipping.spark.relations.hadoop import JavaRule, unpacked
from snaploom.skipping.stores.catalog import LOCATIONS, locations_in

# Settings of a session that control skipping.

ENABLED = "spark.snaploom.skipping.enabled"
"""`false`: queries read every file, as if nothing was installed."""
EVALUATE_ONLY = "spark.snaploom.skipping.evaluateOnly"
"""`true`: what would be skipped is counted, and every file is read."""
FLINT_ENABLED = "spark.flint.optimizer.enabled"
"""Flint's name of the same switch (seed); `false` switches skipping off, too."""
USAGE = "spark.snaploom.skipping.usage"
"""`false`: usage of indexes by queries is not recorded beside the indexes."""
TRACE = "spark.snaploom.skipping.trace"
"""Names the `explain` for whose sake a query is planned; nobody else sets it."""

REQUESTED: tuple[str, ...] = (
    *fingerprint.REQUESTED,
    ENABLED,
    EVALUATE_ONLY,
    LOCATIONS,
    FLINT_ENABLED,
    KEY_SERVICE,
    USAGE,
    TRACE,
)
"""Settings that the optimizer rule sends along with each request."""


@dataclass(frozen=True)
class SkippingSettings:
    """Settings of a session."""

    is_enabled: bool = True
    switched_off_by: str = ""
    """The setting that is `false`; empty while skipping is enabled."""
    is_evaluated_only: bool = False
    locations: tuple[str, ...] = ()
    key_service: str = ""
    """URL of the keys of encrypted indexes, for locations without keys of their own."""
    is_usage_recorded: bool = True
    trace: str = ""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> SkippingSettings:
        """Parse the settings of a request; null stands for the default."""
        off = [name for name in (ENABLED, FLINT_ENABLED) if _text(values, name) == "false"]
        return cls(
            is_enabled=not off,
            switched_off_by="".join(off[:1]),
            is_evaluated_only=_text(values, EVALUATE_ONLY) == "true",
            locations=locations_in(values.get(LOCATIONS)),
            key_service=str(values.get(KEY_SERVICE) or "").strip(),
            is_usage_recorded=_text(values, USAGE) != "false",
            trace=str(values.get(TRACE) or ""),
        )


def _text(values: Mapping[str, object], name: str) -> str:
    return str(values.get(name) or "").strip().lower()


# Parsed requests of the optimizer rule.

FORGOTTEN = "?"
"""The answer to a request whose files are only named, and not known any more: the rule sends it
once more, with the files."""

MOST_ROOTS = 20
"""So many roots are looked up one by one; of more, only the folder that holds them all, for each
look-up costs a call to the store of the indexes."""


@dataclass(frozen=True)
class Request:
    """One relation of files and the conditions on it."""

    header: Mapping[str, object]
    """First line: see `snaploom.skipping.spark.optimizer.requests`."""
    body: str = ""
    """All other lines: the files; nothing where the header names files that were sent before."""

    @classmethod
    def parse(cls, text: str) -> Request:
        """Parse the rule's text; `ValueError` if that is not possible."""
        header, _, body = text.partition("\n")
        return cls(cast(Mapping[str, object], json.loads(header)), body)

    @property
    def settings(self) -> Mapping[str, object]:
        """Settings of the session; None for those that have their default."""
        return cast(Mapping[str, object], self.header["settings"])

    @property
    def filters(self) -> Sequence[object]:
        """Serialised conditions, all of which must hold."""
        return cast(Sequence[object], self.header.get("filters", ()))

    @property
    def name(self) -> str:
        """Table or location of the files, for people."""
        roots = cast(Sequence[str], self.header["roots"])
        table = self.header.get("table")
        more = f" and {len(roots) - 1} more" if len(roots) > 1 else ""
        return str(table) if table else f"{roots[0]}{more}" if roots else "no files"

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """URIs at or above which an index may lie: the table's location, then the roots."""
        location = self.header.get("location")
        places = [str(location)] if location else []
        roots = [
            root
            for root in cast(Sequence[str], self.header["roots"])
            if not any(root == place or root.startswith(f"{place}/") for place in places)
        ]
        if len(roots) > MOST_ROOTS:
            roots = [_common_folder(roots)]
        return tuple(dict.fromkeys(place.rstrip("/") for place in [*places, *roots] if place))

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns, in order."""
        schema = cast(Mapping[str, Sequence[Mapping[str, object]]], self.header["partitionSchema"])
        return tuple(str(field["name"]) for field in schema["fields"])

    @cached_property
    def partitions(self) -> Sequence[Sequence[object]] | None:
        """For each file the serialised values of the partition columns, where they matter."""
        return cast(Sequence[Sequence[object]] | None, self.header.get("partitions"))

    @property
    def listing_name(self) -> str:
        """Identifies the files: a name belongs to one listing only, in any JVM."""
        return str(self.header["listing"])

    def listing(self) -> filetable.Listing:
        """Files; `ValueError` if the lines differ in their number of files."""
        lengths, _, rest = self.body.partition("\n")
        modified, _, paths = rest.partition("\n")
        listing = filetable.Listing.parse(lengths, modified, paths)
        etags = self.header.get("etags")
        if etags is None:
            return listing
        if not isinstance(etags, list) or len(etags) != len(listing):
            raise ValueError(f"a listing of {len(listing)} files has other etags")
        return replace(listing, etags=pa.array(etags, pa.large_string()))


def _common_folder(roots: Sequence[str]) -> str:
    """The common folder of all; the first and the last in order differ earliest."""
    shared = []
    for one, other in zip(min(roots).split("/"), max(roots).split("/"), strict=False):
        if one != other:
            break
        shared.append(one)
    return "/".join(shared)


# Values of partition columns as Spark itself listed them, beside those of an index.


@dataclass(frozen=True)
class Known:
    """Facts to evaluate a condition on."""

    definition: SkippingDefinition
    files: filetable.FileTable
    matched: filetable.Matched | None
    """Files of the listing by rows; None where there is a row for each file, in order."""

    def keep(self, evaluation: Evaluation) -> filetable.Mask:
        return evaluation.keep if self.matched is None else self.matched.keep(evaluation.keep)


def known_of(
    definition: SkippingDefinition,
    files: filetable.FileTable,
    matched: filetable.Matched,
    request: Request,
) -> Known:
    """Facts about the files of a request's listing, by index rows and partition values."""
    partitions, names = request.partitions, request.partition_columns
    if partitions is None:
        return Known(definition, files, matched)
    columns = fingerprint.columns(request.header)
    terms = {
        position: term
        for position, name in enumerate(names)
        if (term := columns.find((name,))) is not None and arrow_type(term.data_type) is not None
    }
    added = {
        position: IndexDefinition(f"partition {position}", valueset.PARTITION.name, (term,))
        for position, term in terms.items()
    }
    own = {column_term((name,), "").key for name in names}
    kept = [
        index for index in definition.indexes if not any(term.key in own for term in index.terms)
    ]
    rows = pa.array(matched.rows, mask=matched.rows == filetable.UNKNOWN_ROW)
    made: dict[str, pa.Array] = {}

    def load(wanted: Sequence[str]) -> pa.Table:
        for position, index in added.items():
            if not made.keys() >= set(_names(index)) and set(wanted) & set(_names(index)):
                values = [row[position] for row in partitions]
                made.update(_columns(index, terms[position], values))
        return pa.table(
            {name: made[name] if name in made else files.column(name).take(rows) for name in wanted}
        )

    indexes = (*kept, *added.values())
    return Known(
        replace(definition, indexes=indexes),
        filetable.FileTable(len(matched.rows), load),
        matched=None,
    )


def _names(index: IndexDefinition) -> tuple[str, str, str]:
    name = index.index_id
    return (
        filetable.values_column(name),
        filetable.nulls_column(name),
        filetable.field_column(name, valueset.PARTITION_FIELD),
    )


def _columns(
    index: IndexDefinition, term: Term, values: Sequence[object]
) -> Mapping[str, pa.Array]:
    """Counts of one row per file show which value is NULL; unknown files have none."""
    # Many files share few values, and reading one costs more than finding it again.
    names = [repr(value) for value in values]
    different = {
        name: literal(value, term.data_type)
        for name, value in dict(zip(names, values, strict=True)).items()
    }
    found = [different[name] for name in names]
    counts = [_count(each) for each in found]
    nulls = [None if count is None else 1 - count for count in counts]
    kept_as = arrow_type(term.data_type)
    arrays = (
        pa.array(counts, pa.int64()),
        pa.array(nulls, pa.int64()),
        pa.array([each.value for each in found], kept_as),
    )
    return dict(zip(_names(index), arrays, strict=True))


def _count(value: Literal) -> int | None:
    if value.is_null:
        return 0
    return None if value.value is None else 1


Decider = Callable[[str], str | None]
"""From a request to one sign a file, `0` to drop it and `1` to keep it, or None to keep all.

A second line may name the indexes that decided, for Spark's EXPLAIN. A third one may have, between
commas, the tags that the files to drop had when they were indexed, or nothing for one: a local file
that has another one when it is about to be dropped is kept. `?` (`requests.FORGOTTEN`) answers a
header without files if those of that name are not known any more; it comes again with them.
"""

Concern = Callable[[str], bool]
"""From only a header to whether the relation may have an index; asked before files are listed."""

_FAILED = "!"
"""Begins an answer that is a failure; see `Installation.java`."""


def install(
    spark: SparkSession,
    decider: Decider,
    settings: Sequence[str],
    concerns: Concern = lambda header: True,
) -> None:
    """Make a session, and all sessions derived from it, ask before they read files.

    Installing again replaces decider and settings. Rules of others stay; if others replace the
    list of rules, ours is back with the next query. A session that is made after `spark.stop()` is
    none of the same family: install again.

    Args:
        spark: the session.
        decider: called in the driver while queries are planned, from several threads at once.
        settings: names whose values in the running session are sent along, such as
            `spark.sql.session.timeZone`; null is sent for those that have their default.
        concerns: called first, with the header without `mode` and `filters`.
    """
    rule = JavaRule(spark)
    gateway = cast(JavaGateway, spark.sparkContext._gateway)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    asked, concerned = _Callback(decider), _Callback(concerns)
    rule.facade.install(spark._jsparkSession, asked, concerned, list(settings))


def uninstall(spark: SparkSession) -> None:
    """Let a session, and all sessions of its family, read all files again."""
    JavaRule(spark).facade.uninstall(spark._jsparkSession)


def is_installed(spark: SparkSession) -> bool:
    """Whether queries of this session ask."""
    return JavaRule(spark).facade.isInstalled(spark._jsparkSession)


def errors(spark: SparkSession) -> tuple[int, str | None]:
    """Number of failed decisions in this JVM, and the last message."""
    facade = JavaRule(spark).facade
    return facade.failures(), facade.lastFailure()


class _Callback:
    """A function as Java sees it; it returns errors as values, whose message Py4J would lose."""

    def __init__(self, function: Callable[[str], str | bool | None]) -> None:
        self._function = function

    def apply(self, text: str) -> str | bool | None:
        try:
            return self._function(unpacked(text))
        except Exception as error:  # noqa: BLE001 -- a query must never fail because of an index
            return f"{_FAILED}{type(error).__name__}: {error}"

    class Java:
        implements = ("java.util.function.Function",)
