"""The page of file formats, their options, and the functions of databases' conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from generation.markdown import NOTE, grouped
from snaploom.policy.fileformats import BUILT_IN, OF_FILES, Holds
from snaploom.policy.formatfaults import REFUSED
from snaploom.policy.sqlconditions import FUNCTIONS


def formats_page() -> str:
    """The page of the lists."""
    return "\n".join(
        [
            "# File formats and their options\n",
            NOTE,
            "`hdfsLike.format` and `target.path.format` name one of the formats here, and "
            "`formatOptions` and `target.path.options` hold options of that format; case does not "
            "count. Everything else is refused with [SL136 or SL137](problems.md#sl136), in a "
            "cluster and on a laptop. An administrator adds formats by `allow.formats` and options "
            "by `allow.options` (as `FORMAT.OPTION`) of the chart; on a laptop "
            "`--allow options=csv.basePath` does.\n",
            "## Options of every format of files\n",
            _options(OF_FILES),
            *_formats(),
            "## Options that are refused for a reason\n",
            grouped(["options", "why"], REFUSED),
            "## Functions of predicates\n",
            "What `jdbc.tablePredicates` may call; `allow.functions` adds to it.\n",
            f"{', '.join(f'`{name}`' for name in sorted(FUNCTIONS))}\n",
        ]
    )


def _formats() -> Iterator[str]:
    for name, each in BUILT_IN.items():
        options = each.options
        yield f"## `{name}`\n"
        own = {option: holds for option, holds in options.items() if option not in OF_FILES}
        if each.reader:
            yield "Read by Snaploom in Spark's workers, not by Spark itself.\n"
        if own:
            yield _options(own)
        elif options:
            yield "Those of every format of files.\n"
        else:
            yield "No options: a table has its own files, schema and versions.\n"


def _options(options: Mapping[str, Holds]) -> str:
    expected = {name: holds.expected for name, holds in sorted(options.items())}
    return grouped(["options", "what each may hold"], expected)
