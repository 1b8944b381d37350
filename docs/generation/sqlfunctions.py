"""The page about functions that SQL may call: from the lists that the gate judges by."""

from __future__ import annotations

from collections.abc import Iterable

from generation.markdown import NOTE, block, grouped, meanings, table
from snaploom.policy.sqlfunctions import FUNCTIONS, Determinism, Function, Kind
from snaploom.spark.kinds import OPTIONS

_INTRODUCTION = """\
# Functions of SQL

Text of declarations that becomes SQL (queries, expressions of transformers, join keys, checks,
indexes) may call the functions of this list: all of Spark's own from 4.1 to 4.3, each judged once.
What is not listed is refused, wherever it comes from: a newer Spark, a user, a catalog. The same
list decides before Spark and again in the job, by what Spark resolved the text to.

An administrator allows more with the chart value `allow.functions`, on a laptop
`--allow functions=NAME`: a function that is refused here, or one that somebody registered.
"""
_DETERMINISM = """\
## What a result depends on

Spark computes rows again when a task or a run is tried again, so what makes rows may depend on
values of columns only. Join keys, transformers, expressions of indexes and the queries of virtual
sources refuse what is SESSION or RANDOM (`SL156`), words without brackets such as `CURRENT_DATE`,
texts such as `DATE 'now'`, and `TABLESAMPLE`; queries with what is ORDER, or with `LIMIT` and no
`ORDER BY`, are warned of (`SL157`). Checks, and the `where` of an index, may read the clock, and
refuse RANDOM only. The job judges again what Spark resolved: there `ts > 'today'` is refused too.

"""
_OPTIONS = """\
## Options

These functions take a map of options. It must be written out, `map('name', 'value', ...)`, and may
hold the following names, in any case. Options that hold a path or a URL are refused; an
administrator allows one with `allow.options`, as `FORMAT.OPTION`.

"""


def functions_page() -> str:
    """The whole page."""
    return "".join(
        [
            NOTE,
            _INTRODUCTION,
            "\n## Refused\n\n",
            grouped(["functions", "why: it"], _refused()),
            f"\n{_DETERMINISM}",
            meanings(Determinism),
            "\n## Allowed\n\n",
            meanings(Kind),
            *_allowed(),
            f"\n{_OPTIONS}",
            table(["functions", "options"], _options()),
        ]
    )


def _refused() -> dict[str, str]:
    return {one.name: one.refused for one in sorted(FUNCTIONS.values(), key=_name) if one.refused}


def _name(function: Function) -> str:
    return function.name


def _allowed() -> Iterable[str]:
    for kind in Kind:
        for determinism in Determinism:
            names = sorted(
                one.name
                for one in FUNCTIONS.values()
                if one.kind is kind and one.determinism is determinism and not one.refused
            )
            if names:
                yield f"\n### {kind}, {determinism}\n\n"
                yield block("text", _lines(names))


def _lines(names: Iterable[str]) -> str:
    lines = [""]
    for name in names:
        if len(lines[-1]) + len(name) > 98:
            lines.append("")
        lines[-1] += f"{name} "
    return "\n".join(line.rstrip() for line in lines)


def _options() -> list[list[str]]:
    functions: dict[frozenset[str], list[str]] = {}
    for name, options in OPTIONS.items():
        functions.setdefault(options, []).append(f"`{name}`")
    return [
        [", ".join(names), ", ".join(f"`{option}`" for option in sorted(options))]
        for options, names in functions.items()
    ]
