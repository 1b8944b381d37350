"""Data of a page, quantities for people, and HTML by construction."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from pydantic import JsonValue

from snaploom.confidential import json_visible, visible_lines
from snaploom.loading.nearmisses import counted as counted
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos, format_instant
from snaploom.models.findings import Finding
from snaploom.models.report import DataFinding, JoinMeasure
from snaploom.output.entries import SnapshotRecord
from snaploom.output.state import Ended
from snaploom.plan.drawings import Picture
from snaploom.plan.intervals import Gap
from snaploom.plan.retention import Removal
from snaploom.run.reports.writer import RunSummary

# HTML by construction: everything not marked as HTML is text, and is escaped inside it.

LONGEST_TEXT = 2_000
"""Characters of one text on a page: a longer one is unreadable, and may be an attack."""
_VOID = frozenset({"meta", "input", "path"})
"""Elements that hold nothing; the slash that ends them is needed in SVG, and harmless in HTML."""

Attribute = str | int | float | bool | None


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


NOTHING = Html("")


def text(value: object) -> Html:
    """Text from anywhere, safe inside HTML: cut where it is very long, controls made visible."""
    plain = str(value)
    if len(plain) > LONGEST_TEXT:
        plain = f"{plain[:LONGEST_TEXT]}… ({len(plain):,} characters)"
    return Html(escape(visible_lines(plain)))


def tag(element: str, *children: str | Html, **attributes: Attribute) -> Html:
    """An element.

    Children that are not `Html` are text. Attributes are named with `_` for `-` and `class_` for
    `class`; None and False leave one out, and `Html` stands as it is.
    """
    opened = f"<{element}{''.join(map(_attribute, attributes, attributes.values()))}"
    if element in _VOID:
        return Html(f"{opened}/>")
    return Html(f"{opened}>{join(children)}</{element}>")


def join(children: Iterable[str | Html], between: str | Html = NOTHING) -> Html:
    """Pieces one behind the other."""
    safe = (child if isinstance(child, Html) else text(child) for child in children)
    return Html((between if isinstance(between, Html) else text(between)).join(safe))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{value if isinstance(value, Html) else text(value)}"'


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Html]],
    *,
    numbers: Iterable[int] = (),
    name: str | None = None,
) -> Html:
    """A table that scrolls sideways where it is too wide; nothing where it has no rows.

    The first cell of each row is its heading. The caption is for readers that do not see the
    heading; `numbers` are the places of columns of numbers, and `name` is the table's id.
    """
    right = frozenset(numbers)
    body = [
        tag(
            "tr",
            *(
                tag(
                    "td" if place else "th",
                    cell,
                    class_="number" if place in right else None,
                    scope=None if place else "row",
                )
                for place, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    if not body:
        return NOTHING
    head = (
        tag("th", label, scope="col", class_="number" if place in right else None)
        for place, label in enumerate(columns)
    )
    whole = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        id=name,
    )
    return tag(
        "div", whole, class_="wide", tabindex=0, role="region", aria_label=f"Table: {caption}"
    )


def filtered(table_id: str, what: str) -> Html:
    """A field by which the page's script shows only some rows of a table."""
    field = tag(
        "input", type="search", placeholder=what, id=f"{table_id}-filter", data_filters=table_id
    )
    return tag("p", tag("label", "Find ", field), class_="controls scripted")


def data_block(name: str, document: JsonValue) -> Html:
    """Data for the page's script: JSON that no parser of HTML takes for anything else."""
    written = json_visible(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
    for sign in "<>&":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Html(f'<script type="application/json" id="{text(name)}">{written}</script>')


# Numbers, sizes and lengths of time as people read them.

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def size(count: float) -> str:
    """Bytes in the largest unit of 1,024 that leaves at least one: `1.5 MiB`."""
    for unit in _UNITS[:-1]:
        if abs(count) < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} {_UNITS[-1]}"


def number(count: float) -> str:
    """A whole number with separators."""
    return f"{count:,.0f}"


def share(part: float, whole: float) -> str:
    """Per cent; a dash if the whole is zero. Neither 0 nor 100 is shown of a share only near it."""
    if not whole:
        return "–"
    value = 100 * part / whole
    if 0 < value < 0.1:
        return "< 0.1%"
    if 99.9 < value < 100:
        return "> 99.9%"
    return f"{value:.1f}%".replace(".0%", "%")


def span(nanos: int) -> str:
    """A length of time in its two largest units: `2 d 3 h`; `0 s` for less than a second."""
    seconds = abs(nanos) // NANOS_PER_SECOND
    parts = []
    for length, unit in _SPANS:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts[:2]) or "0 s"


def moment(time: EpochNanos | None) -> Html:
    """An instant in UTC; a dash where there is none."""
    if time is None:
        return Html("–")
    return tag("time", shortened(time), datetime=format_instant(time))


def shortened(time: EpochNanos) -> str:
    """An instant in UTC without trailing zeros: `2024-05-31`, `2024-05-31 15:00`."""
    date, _, clock = format_instant(time).removesuffix("Z").partition("T")
    return date if clock == "00:00:00" else f"{date} {clock.removesuffix(':00')}"


def ago(time: EpochNanos, now: EpochNanos, is_present: bool) -> Html:
    """An age, which the page's script keeps up to date where `now` is the present."""
    written = f"{span(now - time)} ago" if now >= time else f"in {span(time - now)}"
    return tag("span", written, data_since=time // 1_000_000 if is_present else None)


# The data of an output's page, frozen before any of it is drawn.


def warnings_about(field_name: str, warnings: Iterable[str]) -> tuple[str, ...]:
    """The warnings about one join, without its name."""
    about = ((name.casefold(), text) for name, _, text in (one.partition(": ") for one in warnings))
    return tuple(text for name, text in about if name == f"`{field_name.casefold()}`")


@dataclass(frozen=True)
class Column:
    """One column of a source, or one field of a schema."""

    name: str
    """Its path, such as `customer.data.name`."""
    type: str
    """Its type as Spark names it, such as `decimal(10,2)`."""


@dataclass(frozen=True)
class Node:
    """One source of the output, as declared and as the newest snapshot has it."""

    number: int
    """Number in the join tree; the root is 0."""
    field_name: str
    """Field of the output; empty for the root."""
    source: str
    parent: str
    """Field of the output that it is joined to; empty at the root, and below it."""
    relationship: str
    """Name of the DataRelationship; empty at the root."""
    kind: str = ""
    """The kind of data read, such as `parquet`; empty where declarations are not at hand."""
    keys: tuple[str, ...] = ()
    """Components of the key, each with both sides."""
    group_by: tuple[str, ...] = ()
    """Columns by which its rows are collected into an array."""
    columns: tuple[Column, ...] = ()
    """Its columns in the newest snapshot, or as declared."""
    taken: str = ""
    """Time of its snapshot that the newest one has, ISO 8601."""
    left_out: str = ""
    """Reason why the newest snapshot does without it; empty if it does not."""
    measure: JoinMeasure | None = None
    """The counts at its join in the newest snapshot."""
    warnings: tuple[str, ...] = ()
    """Warnings of the newest snapshot about its join."""

    @property
    def title(self) -> str:
        return self.field_name or self.source


@dataclass(frozen=True)
class Freshness:
    """Age of the newest publication, against `run.freshness`."""

    published: EpochNanos | None
    """Time of the last publication; None before the first."""
    expires: EpochNanos | None
    """Time from which the output is stale; None where no age is declared, or nothing is
    published."""
    is_declared: bool = False


@dataclass(frozen=True)
class SchemaChange:
    """Differences between the schemas of two successive snapshots."""

    time: EpochNanos
    """The first snapshot with the new schema."""
    added: tuple[Column, ...] = ()
    removed: tuple[Column, ...] = ()
    retyped: tuple[tuple[Column, str], ...] = ()
    """Columns whose type changed, with the type before."""
    model: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckHistory:
    """Results of one expectation in all live snapshots."""

    name: str
    mode: str
    expression: str
    """As declared; empty where it is not declared any more."""
    met: int
    """Snapshots that met it."""
    unmet: int
    """Snapshots that were published although they did not."""
    last_unmet: EpochNanos | None = None
    """The newest of these."""
    measured: str = ""
    """The value measured instead in that one."""


@dataclass(frozen=True)
class LineageLine:
    """Origin of one column of the output, as far as declarations show."""

    column: str
    """Path in the output."""
    type: str
    source: str
    """Name of the DataSource."""
    origin: str
    """Its column there, after the transformers of the source."""
    through: str
    """The steps in between, for people; empty where values are taken as they are."""
    places: tuple[str, ...] = ()
    """Datasets that the source reads, as lineage names them."""


@dataclass(frozen=True)
class IndexState:
    """One declared SkippingIndex on the output, or on a source of it."""

    name: str
    target: str
    indexes: tuple[str, ...]
    """The facts kept about each file, such as `id MIN_MAX`."""
    phase: str = ""
    """State as committed; empty where it was not looked at."""
    refreshed: EpochNanos | None = None
    """Time at which its rows were brought up to date."""
    files: int | None = None
    """Files about which there are rows; None where that was not looked at."""
    bytes: int = 0
    coverage: tuple[tuple[str, int, int], ...] = ()
    """By index, files that it covers and files that it does not."""
    reads: int | None = None
    """Reads that queries tried it for, as sessions recorded; None where nothing is recorded."""
    files_considered: int = 0
    files_dropped: int = 0
    bytes_considered: int = 0
    bytes_dropped: int = 0
    distinct: Mapping[str, int] = field(default_factory=dict)
    """By column, the number of values in the newest snapshot, where it has them all."""
    problem: str = ""
    """Reason why its state is not shown."""


@dataclass(frozen=True)
class ColumnFacts:
    """Facts that footers of the newest snapshot's files prove about a column outside arrays."""

    name: str
    """Its path in the output."""
    type: str
    values: int
    """Rows in which it is not NULL."""
    nulls: int
    """Rows in which it is NULL."""
    least: str = ""
    """Least value; empty where footers do not prove one."""
    greatest: str = ""


@dataclass(frozen=True)
class Due:
    """The work of a run that began now, as far as names of files show it."""

    times: tuple[EpochNanos, ...] = ()
    """Snapshots that it would publish."""
    problem: str = ""
    """The reason why that is not known, or why it would fail."""
    data_findings: tuple[DataFinding, ...] = ()
    """Faults of the snapshots that sources list, and of files of published ones."""


@dataclass(frozen=True)
class OutputPage:
    """Everything that the page of one output shows."""

    name: str
    folder: str
    now: EpochNanos
    """Instant of the observation; ages are measured to it."""
    is_present: bool = False
    """Whether that is the present, so that ages go on growing while the page is looked at."""
    picture: Picture | None = None
    """Drawing of the join tree; None where there is none."""
    nodes: tuple[Node, ...] = ()
    snapshots: tuple[SnapshotRecord, ...] = ()
    ended: tuple[Ended, ...] = ()
    """Versions that were deleted or replaced, in the order in which they were."""
    revoked: int = 0
    """Runs that may commit nothing any more, since they crashed or were superseded."""
    gaps: tuple[Gap, ...] = ()
    going: tuple[Removal, ...] = ()
    """Snapshots that retention would delete at the next publication, if nothing were added."""
    freshness: Freshness = Freshness(None, None)
    schema_changes: tuple[SchemaChange, ...] = ()
    """Newest first."""
    checks: tuple[CheckHistory, ...] = ()
    lineage: tuple[LineageLine, ...] = ()
    indexes: tuple[IndexState, ...] = ()
    runs: tuple[RunSummary, ...] = ()
    """Runs that the folder or a Report knows, newest first."""
    running: str = ""
    """The run at work, if one is."""
    due: Due | None = None
    """None where only the folder is at hand, or a time in the past is asked for."""
    data_findings: tuple[DataFinding, ...] = ()
    """Faults and changes in the data, as the newest snapshot and the last run show them."""
    columns: tuple[ColumnFacts, ...] = ()
    description: str = ""
    """Text of the annotation of the output that is named `description`."""
    owner: str = ""
    """That of the one named `owner`."""
    findings: tuple[Finding, ...] = ()
    problem: str = ""
    """The reason why published snapshots are not shown; empty where they are."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Fixed or declared facts about the folder, for people, by name."""

    @property
    def newest(self) -> SnapshotRecord | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def total_bytes(self) -> int:
        """Size of all live files."""
        return sum(size_of(record) for record in self.snapshots)

    @property
    def is_stale(self) -> bool:
        """Whether `run.freshness` has run out."""
        if self.freshness.expires is None:
            return self.freshness.is_declared and self.freshness.published is None
        return self.now >= self.freshness.expires

    @property
    def errors(self) -> int:
        """Findings that stop a run."""
        return sum(finding.is_error for finding in self.findings)


def size_of(record: SnapshotRecord) -> int:
    """Bytes of a snapshot's files."""
    return sum(file.bytes for file in record.files)


def reading_snippets(folder: str, data_format: str) -> tuple[tuple[str, str], ...]:
    """By name of a program, what reads the output in Python."""
    files = (
        "from subprocess import check_output\n\n"
        f'listed = check_output(["snaploom", "files", {folder!r}], text=True)\n'
        "files = listed.splitlines()  # what is published, and nothing else\n"
    )
    spark = (
        "import snaploom as sl\nfrom pyspark.sql import SparkSession\n\n"
        f"spark = SparkSession.builder.getOrCreate()\nwide = sl.read(spark, {folder!r})\n"
    )
    if data_format not in ("PARQUET", "ICEBERG", "DELTA"):
        return (("Spark", spark),)
    duckdb = (
        f"import duckdb\n{files}"
        "wide = duckdb.read_parquet(files, union_by_name=True, hive_partitioning=True)\n"
    )
    pandas = (
        f"import pandas as pd\n{files}"
        "wide = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)\n"
    )
    return (("Spark", spark), ("DuckDB", duckdb), ("pandas", pandas))
