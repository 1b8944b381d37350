"""Advice for people, for programs, and as a SkippingIndex."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from pydantic import JsonValue

from snaploom.loading.load import load
from snaploom.models.common import API_VERSION
from snaploom.models.findings import InvalidDeclarations, errors_of
from snaploom.models.kinds import TextDumper
from snaploom.plugins.advice.recommendations import Advice, ColumnAdvice, Order
from snaploom.skipping.core.definition import IndexDefinition, Target
from snaploom.skipping.core.predicates import size_text, wrapped

# Advice for people, in 80 columns, and for programs.

_MOST_ORDERS = 5
"""Orders that are shown."""


@dataclass(frozen=True)
class Report:
    """Advice, with the data it rests on."""

    target: str
    """The table, or where the files are."""
    advice: Advice
    files: int
    seen_files: int
    seen_rows: int
    """Rows with which orders were simulated."""
    queries: int
    """Queries for which files were counted."""
    is_logged: bool
    """Whether they are of a log; else they were drawn from the data."""
    doubts: tuple[str, ...]
    """Parts of the log that were not understood or left out, with reasons."""
    resource: str
    """The SkippingIndex as YAML; empty where no index is advised."""

    @property
    def document(self) -> JsonValue:
        advice = self.advice
        return {
            "target": self.target,
            "files": self.files,
            "filesRead": self.seen_files,
            "rowsSampled": self.seen_rows,
            "queries": self.queries,
            "queriesAre": "LOGGED" if self.is_logged else "DRAWN",
            "skipped": round(advice.share, 4),
            "columns": [_column_document(column) for column in advice.columns],
            "orders": [
                {**_order_document(each.order), "skipped": round(each.share, 4)}
                for each in advice.orders
            ],
            "sort": None if advice.order is None else _order_document(advice.order),
            "doubts": list(self.doubts),
            "resource": self.resource,
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from wrapped(self.target, "")
        kind = "of the log" if self.is_logged else "drawn from the data"
        yield from wrapped(
            f"{self.seen_files} of {self.files} files were read, and {self.queries} queries {kind} "
            "tried on them.",
            "  ",
        )
        yield ""
        yield f"  {'column':<28} {'index':<13} {'skips':>6} {'size':>10}"
        for column in self.advice.columns:
            yield from _column_lines(column)
        yield ""
        yield from self._order_lines()
        for doubt in self.doubts:
            yield from wrapped(f"not counted: {doubt}", "  ")
        if self.resource:
            when = "" if self.advice.order is None else ", once the files are sorted so"
            yield from ("", f"# snaploom index apply -f FILE{when}", self.resource.rstrip())

    def _order_lines(self) -> Iterator[str]:
        advice = self.advice
        if advice.indexes:
            yield from wrapped(
                f"The advised indexes (*) skip {advice.share:.0%} of the files of a query, on "
                "average.",
                "  ",
            )
        else:
            yield "  No index would help with the files as they are."
        if advice.order is None:
            yield "  Sorting is not worth a rewrite."
        else:
            columns = " ".join(f"--by {_shell(term.label)}" for term in advice.order.terms)
            yield from wrapped(
                f"Sorting would help: snaploom index sort ... {columns} --curve "
                f"{advice.order.curve.value}",
                "  ",
            )
        for each in advice.orders[:_MOST_ORDERS]:
            names = ", ".join(term.label for term in each.order.terms)
            yield from wrapped(f"{each.share:>4.0%}  {each.order.curve.value} by {names}", "    ")


def _column_lines(column: ColumnAdvice) -> Iterator[str]:
    label = column.term.label
    if len(label) > 28:
        label = f"{label[:25]}..."
    for number, each in enumerate(column.estimates):
        mark = "*" if each.is_advised else " "
        yield (
            f"{mark} {label if number == 0 else '':<28} {each.index.type:<13} "
            f"{each.share:>6.0%} {size_text(each.bytes):>10}"
        )
    if column.why:
        yield from wrapped(f"{column.term.label}: {column.why}", "    ")


def _column_document(column: ColumnAdvice) -> JsonValue:
    return {
        "on": column.term.label,
        "dataType": column.term.data_type,
        "queries": column.queries,
        "indexes": [
            {
                "type": each.index.type,
                "skipped": round(each.share, 4),
                "bytes": each.bytes,
                "advised": each.is_advised,
            }
            for each in column.estimates
        ],
        "skippedIfSorted": round(column.sorted_share, 4),
        "why": column.why,
    }


def _order_document(order: Order) -> dict[str, JsonValue]:
    return {"curve": order.curve.value, "by": [term.label for term in order.terms]}


def _shell(name: str) -> str:
    return name if name.replace(".", "_").isidentifier() else f"'{name}'"


# Advice as a SkippingIndex, ready to apply.


def resource_yaml(target: Target, indexes: Sequence[IndexDefinition], location: str) -> str:
    """The resource as YAML, which the loader of resources accepts."""
    document: JsonValue = {
        "apiVersion": API_VERSION,
        "kind": "SkippingIndex",
        "metadata": {"name": _name(target)},
        "spec": {
            "target": _target(target),
            "indexes": [_index(index) for index in indexes],
            "store": {"parquet": {"location": location}},
        },
    }
    text: str = yaml.dump(
        document, Dumper=TextDumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    with TemporaryDirectory() as folder:
        file = Path(folder, "advice.yaml")
        file.write_text(text, encoding="utf-8")
        findings = errors_of(load([file]).findings)
    if findings:
        raise InvalidDeclarations(findings)
    return text


def _target(target: Target) -> JsonValue:
    if target.table:
        return {"table": {"name": target.table}}
    path: dict[str, JsonValue] = {"uri": target.uri, "format": target.format}
    if target.options:
        path["options"] = dict(target.options)
    return {"path": path}


def _index(index: IndexDefinition) -> JsonValue:
    columns = [
        term.label if term.names is None else ".".join(map(_quoted, term.names))
        for term in index.terms
    ]
    subject: dict[str, JsonValue] = {"type": index.type}
    if index.term.names is None:
        subject["expression"] = columns[0]
    else:
        subject["column"] = columns[0]
    if index.parameters:
        subject["parameters"] = dict(index.parameters)
    return subject


def _quoted(name: str) -> str:
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


def _name(target: Target) -> str:
    last = target.label.rsplit("/", 1)[-1]
    plain = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")
    return f"{plain[:200] or 'advised'}-skipping"
