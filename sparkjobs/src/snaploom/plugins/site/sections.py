"""The sections of an output's page, each from its data."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from pydantic import JsonValue

from snaploom.models.common import parse_instant
from snaploom.models.findings import Finding
from snaploom.models.report import DataFinding, RunPhase
from snaploom.output.replacement import REPLACED
from snaploom.plugins.site import drawings
from snaploom.plugins.site.pagedata import (
    NOTHING,
    Column,
    Due,
    Html,
    IndexState,
    OutputPage,
    SchemaChange,
    ago,
    counted,
    filtered,
    join,
    moment,
    number,
    reading_snippets,
    share,
    size,
    size_of,
    span,
    table,
    tag,
)
from snaploom.plugins.site.timeline import Axis, Series, chart, newest, timeline
from snaploom.run.reports.writer import RunSummary

# The sections about history: events, volume, match rates, and ages of source snapshots.

SHOWN = 20
"""Lines of a list of events; the timeline has all."""
_DAY = 86_400 * 1_000_000_000


def timeline_section(page: OutputPage) -> Html:
    """The lanes, and each kind of event as a list, the newest first."""
    live = {record.time for record in page.snapshots}
    restated = [record for record in page.snapshots if record.replaces is not None]
    failed = [(run.run_id, each) for run in page.runs for each in run.failed]
    deleted = [one for one in page.ended if one.time not in live and one.rule != REPLACED]
    return join([
        timeline(page),
        _due(page),
        _events("Gaps", ("from", "to", "intervals"), len(page.gaps), (
            (moment(gap.start), moment(gap.end),
             f"{gap.intervals:,}" + (" or more" if gap.is_bounded else ""))
            for gap in reversed(page.gaps)
        )),
        _events("Failed", ("snapshot", "reason", "message", "run"), len(failed), (
            (one.time, one.reason.value, one.message, tag("code", run)) for run, one in failed
        )),
        _events("Restated", ("snapshot", "on", "why"), len(restated), (
            (moment(one.time), moment(one.created_at), one.reason or "no reason is recorded")
            for one in reversed(restated)
        )),
        _events("Deleted next", ("snapshot", "by the rule"), len(page.going), (
            (moment(one.time), one.rule.value) for one in page.going
        )),
        _events("Deleted", ("snapshot", "by the rule", "on"), len(deleted), (
            (moment(one.time), one.rule, moment(one.deleted_at)) for one in reversed(deleted)
        )),
        tag("p", f"{counted(page.revoked, 'run')} may commit nothing any more: crashed, or "
            "another run took over.", class_="quiet") if page.revoked else NOTHING,
    ])  # fmt: skip


def _due(page: OutputPage) -> Html:
    """Snapshots that a run would publish, the run at work, and the failure of the last one."""
    due = page.due or Due()
    failed = page.runs[0].message if has_failed_last(page) else ""
    return join([
        drawings.definitions([
            ("running", page.running),
            ("last run failed", tag("span", failed, class_="bad") if failed else ""),
            ("due", tag("span", due.problem, class_="bad") if due.problem else ""),
        ]),
        _events("Due, and not published yet", ("snapshot",), len(due.times), (
            (moment(time),) for time in due.times
        )),
    ])  # fmt: skip


def has_failed_last(page: OutputPage) -> bool:
    """Whether the last run failed, and there is still something for it to do."""
    is_open = page.due is None or bool(page.due.times or page.due.problem)
    return bool(page.runs) and page.runs[0].phase is RunPhase.FAILED and is_open


def _events(
    title: str, columns: Sequence[str], count: int, rows: Iterable[Sequence[str | Html]]
) -> Html:
    if not count:
        return NOTHING
    more = count - SHOWN
    return tag(
        "details",
        tag("summary", title, " ", tag("span", f"{count:,}", class_="quiet")),
        table(title, columns, islice(rows, SHOWN)),
        tag("p", f"and {more:,} more", class_="quiet") if more > 0 else NOTHING,
        open=count <= SHOWN // 4,
    )


def volume_section(page: OutputPage) -> Html:
    """Rows and bytes over time."""
    times = [record.time for record in page.snapshots]
    rows = Series("rows", tuple(float(record.rows) for record in page.snapshots))
    sizes = Series("size", tuple(float(size_of(record)) for record in page.snapshots))
    return tag(
        "div",
        chart("rows-chart", "Rows a snapshot", times, [rows], Axis(number, newest, 0)),
        chart("bytes-chart", "Size of a snapshot", times, [sizes], Axis(size, newest, 0)),
        class_="charts",
    )


def rates_section(page: OutputPage) -> Html:
    """Shares of rows that matched, and that had a NULL key, over time."""
    times = [record.time for record in page.snapshots]
    matched, nulls = _rate_series(page)
    matched.sort(key=lambda line: _worst(line, min))
    nulls.sort(key=lambda line: -_worst(line, max))
    nulls = [line for line in nulls if _worst(line, max) > 0]
    return join([
        tag("div",
            chart("match-chart", "Rows that found a match, the lowest first", times, matched,
                  Axis(_per_cent, min, None, 100)),
            chart("null-chart", "Rows with a NULL key, the highest first", times, nulls,
                  Axis(_per_cent, max, 0))
            or tag("p", "No row had a NULL key in any snapshot.", class_="quiet"),
            class_="charts"),
    ])  # fmt: skip


def _rate_series(page: OutputPage) -> tuple[list[Series], list[Series]]:
    names = list(dict.fromkeys(join.child for record in page.snapshots for join in record.joins))
    matched: dict[str, list[float | None]] = {name: [] for name in names}
    nulls: dict[str, list[float | None]] = {name: [] for name in names}
    for record in page.snapshots:
        known = {join.child: join for join in record.joins if join.in_}
        for name in names:
            one = known.get(name)
            matched[name].append(None if one is None else 100 * one.matched / one.in_)
            nulls[name].append(None if one is None else 100 * one.null_keys / one.in_)
    return (
        [Series(name, tuple(values)) for name, values in matched.items()],
        [Series(name, tuple(values)) for name, values in nulls.items()],
    )


def _worst(line: Series, choose: Callable[[Sequence[float]], float]) -> float:
    known = [value for value in line.values if value is not None]
    return choose(known) if known else 0.0


def _last(line: Series) -> float | None:
    return next((value for value in reversed(line.values) if value is not None), None)


def _per_cent(value: float | None) -> str:
    return "–" if value is None else share(value, 100)


def lags_section(page: OutputPage) -> Html:
    """Return the age of each source's snapshot when it was taken."""
    times = [record.time for record in page.snapshots]
    known = [dict(drawings.lags_of(record)) for record in page.snapshots]
    names = list(dict.fromkeys(name for lags in known for name in lags))
    lines = [
        Series(name, tuple(lags[name] / _DAY if name in lags else None for lags in known))
        for name in names
    ]
    lines.sort(key=lambda line: -_worst(line, max))
    rows = [(line.name, _days(_last(line)), _days(_worst(line, max))) for line in lines]
    moving = [line for line in lines if _worst(line, max) > 0]
    return join([
        chart("lag-chart", "How much older than the root's the snapshot of a source is", times,
              moving, Axis(_days, max, 0))
        or tag("p", "No source had a snapshot that is older than the root's.",
               class_="quiet"),
        table("Age of source snapshots", ("field", "now", "most"), rows, numbers=(1, 2)),
    ])  # fmt: skip


def _days(value: float | None) -> str:
    if value is None:
        return "not taken"
    later = " later" if value < 0 else ""
    return f"{span(int(value * _DAY))}{later}" if value else "same time"


SAMPLE_COLUMNS, LONGEST_SAMPLE = 60, 80
"""Columns of sample rows, and characters of their values."""
MOST_LINES = 500
"""Columns whose lineage a page lists."""


@dataclass(frozen=True)
class Section:
    """One section of a page."""

    name: str
    title: str
    body: Html
    note: str = ""
    """The text beside its title, such as a number."""


def sections_of(page: OutputPage) -> tuple[Section, ...]:
    """All sections that have something to show, in their order."""
    found = [
        Section("findings", "Findings", findings_list(page.findings), str(len(page.findings)))
        if page.errors
        else None,
        Section("graph", "Join graph", drawings.graph_section(page.picture, page.nodes)),
        Section("timeline", "Timeline", timeline_section(page)) if _has_history(page) else None,
        _titled("data", "About the data", data_table(page.data_findings), len(page.data_findings)),
        Section("read", "Read it", _reading(page)) if page.snapshots else None,
        Section("volume", "Rows and bytes", volume_section(page)) if page.snapshots else None,
        Section("rates", "Matches and NULL keys", rates_section(page))
        if _has_joins(page)
        else None,
        Section("snapshots", "Snapshots", drawings.snapshot_table(page), str(len(page.snapshots))),
        Section("served", "Age of source snapshots", lags_section(page))
        if _has_joins(page)
        else None,
        _titled("sample", "Sample rows", _sample_rows(page), len(_sampled(page))),
        _titled("columns", "Columns", _columns(page), len(page.columns)),
        _titled("checks", "Checks", _checks(page), len(page.checks)),
        _titled(
            "schema",
            "Schema history",
            tag("ol", *map(_change, page.schema_changes), class_="changes"),
            len(page.schema_changes),
        ),
        _titled("lineage", "Lineage by column", _lineage(page), len(page.lineage)),
        _titled(
            "indexes",
            "Indexes",
            join(tag("article", *_index(index, page)) for index in page.indexes),
            len(page.indexes),
        ),
        _titled("runs", "Runs", _runs(page), len(page.runs)),
        None
        if page.errors
        else Section("findings", "Findings", findings_list(page.findings), str(len(page.findings))),
        Section("folder", "Output folder", _folder(page)),
    ]
    return tuple(section for section in found if section is not None)


def tiles(page: OutputPage) -> Html:
    """The state of an output in a few numbers."""
    latest = page.newest
    found = [_fresh_tile(page)]
    if latest is not None:
        found += [
            tile("Newest snapshot", moment(latest.time), f"{number(latest.rows)} rows"),
            tile("Snapshots", number(len(page.snapshots)), f"{size(page.total_bytes)} in all"),
        ]
    if page.due is not None:
        count, problem = len(page.due.times), page.due.problem
        about = "snapshots that a run would publish now"
        found.append(
            tile(
                "Due",
                number(count),
                problem or about,
                "bad" if problem else "warn" if count else "",
            )
        )
    gaps = sum(gap.intervals for gap in page.gaps)
    restated = sum(record.replaces is not None for record in page.snapshots)
    if page.snapshots:
        found += [
            tile("Gaps", number(gaps), "intervals without a snapshot", "warn" if gaps else ""),
        ]
    if restated:
        found.append(tile("Restated", number(restated), "snapshots with a corrected version"))
    wrong = page.errors
    warnings = len(page.findings) - wrong
    found.append(
        tile(
            "Findings",
            number(len(page.findings)),
            f"{counted(wrong, 'error')}, {counted(warnings, 'warning')}",
            "bad" if wrong else "warn" if warnings else "",
        )
    )
    return tag("ul", *found, class_="tiles", aria_label="State in numbers")


def state_of(page: OutputPage) -> tuple[str, str]:
    """The state of an output in a word, and how good that is: good, warn, bad or nothing."""
    if page.problem:
        return "cannot be read", "bad"
    if page.running:
        return "running", ""
    if has_failed_last(page):
        return "last run failed", "bad"
    if not page.snapshots:
        return "nothing published", "warn" if page.is_stale else ""
    if page.is_stale:
        return "stale", "bad"
    if page.due is not None and page.due.times:
        return f"{len(page.due.times):,} due", "warn"
    return ("fresh", "good") if page.freshness.is_declared else ("published", "")


def _fresh_tile(page: OutputPage) -> Html:
    word, mood = state_of(page)
    published = page.freshness.published
    if published is None:
        about: Html = tag("span", "no run has published yet")
    elif page.freshness.expires is None:
        about = join(["published ", ago(published, page.now, page.is_present)])
    else:
        written = ago(published, page.now, page.is_present)
        about = join(["published ", written, f"; {drawings.staleness(page)}"])
    return tile("State", word, about, mood)


def tile(title: str, value: str | Html, about: str | Html, mood: str = "") -> Html:
    """A number with its caption; the mood is good, warn, bad or empty."""
    return tag(
        "li",
        tag("span", title, class_="tiletitle"),
        tag("strong", value),
        tag("span", about, class_="quiet"),
        class_=mood or None,
    )


def _titled(name: str, title: str, body: Html, count: int) -> Section | None:
    return Section(name, title, body, f"{count:,}") if count else None


def _has_history(page: OutputPage) -> bool:
    is_due = page.due is not None and (page.due.times or page.due.problem)
    return bool(page.snapshots or page.ended or page.runs or is_due)


def _has_joins(page: OutputPage) -> bool:
    return any(record.joins for record in page.snapshots)


def _checks(page: OutputPage) -> Html:
    rows = [
        (
            tag("strong", check.name),
            check.mode,
            tag("code", check.expression) if check.expression else "",
            number(check.met),
            tag("span", number(check.unmet), class_="bad" if check.unmet else None),
            join([moment(check.last_unmet), f": {check.measured}"]) if check.unmet else "",
        )
        for check in page.checks
    ]
    columns = ("check", "mode", "expression", "met", "not met", "last not met")
    return table("Checks", columns, rows, numbers=(3, 4))


def _change(change: SchemaChange) -> Html:
    lines = [
        *(_column_change("added", "+", column, "") for column in change.added[:MOST_LINES]),
        *(_column_change("removed", "−", column, "") for column in change.removed[:MOST_LINES]),
        *(
            _column_change("retyped", "~", column, before)
            for column, before in change.retyped[:MOST_LINES]
        ),
        *(tag("li", note) for note in change.model),
    ]
    return tag("li", tag("h3", "From ", moment(change.time)), tag("ul", *lines))


def _column_change(kind: str, sign: str, column: Column, before: str) -> Html:
    was = f"{before} → " if before else ""
    return tag(
        "li",
        tag("span", sign, class_="sign", aria_label=kind, role="img"),
        " ",
        tag("code", column.name),
        " ",
        tag("span", f"{was}{column.type}", class_="quiet"),
        class_=kind,
    )


def _lineage(page: OutputPage) -> Html:
    rows = [
        (
            tag("code", line.column),
            line.type,
            join([line.source, ".", tag("code", line.origin)]),
            line.through,
            ", ".join(line.places),
        )
        for line in page.lineage[:MOST_LINES]
    ]
    more = len(page.lineage) - len(rows)
    return join([
        filtered("lineage-table", "column or source"),
        table("Lineage by column", ("column", "type", "from", "through", "read from"), rows,
              name="lineage-table"),
        tag("p", f"and {more:,} more columns: `snaploom schema` prints all", class_="quiet")
        if more > 0 else NOTHING,
    ])  # fmt: skip


def _index(index: IndexState, page: OutputPage) -> Sequence[Html]:
    saved = ""
    if index.reads:
        saved = (
            f"{number(index.files_dropped)} of {number(index.files_considered)} files "
            f"({share(index.files_dropped, index.files_considered)}) and "
            f"{size(index.bytes_dropped)} of {size(index.bytes_considered)} in "
            f"{counted(index.reads, 'read')}"
        )
    elif index.reads == 0:
        saved = "no query has used it yet"
    facts: list[tuple[str, str | Html]] = [
        ("about", index.target),
        ("keeps", ", ".join(index.indexes)),
        ("state", index.phase),
        (
            "refreshed",
            ago(index.refreshed, page.now, page.is_present) if index.refreshed is not None else "",
        ),
        ("files", "" if index.files is None else f"{number(index.files)}, {size(index.bytes)}"),
        ("left out", saved),
        ("problem", tag("span", index.problem, class_="bad") if index.problem else ""),
    ]
    rows = [
        (label, number(known), number(unknown), share(known, known + unknown))
        for label, known, unknown in index.coverage
    ]
    columns = ("index", "files covered", "not covered", "coverage")
    return (
        tag("h3", index.name),
        drawings.definitions(facts),
        table(f"Coverage of {index.name}", columns, rows, numbers=(1, 2, 3)),
    )


def _runs(page: OutputPage) -> Html:
    rows = [
        (
            tag("code", run.run_id),
            run.started_at,
            _took(run),
            number(run.published),
            tag("span", run.phase, class_="bad" if run.phase is RunPhase.FAILED else None),
            run.message,
        )
        for run in page.runs[:MOST_LINES]
    ]
    columns = ("run", "started", "took", "published", "ended as", "message")
    return table("Runs", columns, rows, numbers=(2, 3))


def _took(run: RunSummary) -> str:
    try:
        return span(parse_instant(run.finished_at or "") - parse_instant(run.started_at))
    except ValueError:  # it has not ended, or a Report is somebody else's text
        return "–"


def data_table(findings: Iterable[DataFinding]) -> Html:
    """A table of faults and changes in the data."""
    rows = [(str(each), tag("code", each.fix) if each.fix else "") for each in findings]
    return table("About the data", ("found", "fix"), rows)


def _sampled(page: OutputPage) -> list[dict[str, str]]:
    """Rows that the last run kept, by path of the column; what is no row is left out."""
    texts = next((run.sample for run in page.runs if run.sample), ())
    found = []
    for text in texts:
        with suppress(ValueError, RecursionError):  # a folder is somebody else's text
            row = json.loads(text)
            found.append(dict(_flat(row, ""))) if isinstance(row, dict) else None
    return found


def _flat(row: Mapping[str, JsonValue], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{prefix}{name}", "NULL" if value is None else text[:LONGEST_SAMPLE]


def _sample_rows(page: OutputPage) -> Html:
    rows = _sampled(page)
    columns = list(dict.fromkeys(name for row in rows for name in row))[:SAMPLE_COLUMNS]
    lines = [[row.get(name, "") for name in columns] for row in rows]
    return join([
        table("Sample rows", columns, lines),
        tag("p", "The newest snapshot's, as the last run found them. Metadata `confidential` hides "
            "a column, and the annotation `samples: none` all of them.", class_="quiet"),
    ])  # fmt: skip


def _columns(page: OutputPage) -> Html:
    distinct = {name: count for one in page.indexes for name, count in one.distinct.items()}
    rows = [
        (
            tag("code", one.name),
            one.type,
            number(one.nulls),
            share(one.nulls, one.values + one.nulls),
            number(distinct[one.name]) if one.name in distinct else "–",
            one.least or "–",
            one.greatest or "–",
        )
        for one in page.columns
    ]
    columns = ("column", "type", "NULL", "share", "distinct", "least", "greatest")
    return table("Columns of the newest snapshot", columns, rows, numbers=(2, 3, 4))


def _reading(page: OutputPage) -> Html:
    data_format = page.facts.get("format", "").partition(",")[0]
    return join(
        tag("details", tag("summary", name), tag("pre", tag("code", text)))
        for name, text in reading_snippets(page.folder, data_format)
    )


def findings_list(findings: Sequence[Finding]) -> Html:
    """Errors and warnings, with their fixes."""
    if not findings:
        return tag("p", "Nothing is wrong or doubtful.")
    return join(_finding(finding) for finding in findings)


def _finding(finding: Finding) -> Html:
    place = f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file
    severity = finding.severity.value.lower()
    return tag(
        "article",
        tag(
            "h3",
            tag("span", f"{severity} {finding.code}", class_="bad" if finding.is_error else "warn"),
            " ",
            finding.message,
        ),
        drawings.definitions([
            ("in", finding.resource),
            ("field", tag("code", finding.path) if finding.path else ""),
            ("file", place),
            ("found", finding.found),
            ("expected", finding.expected),
            ("fix", finding.hint),
        ]),
        class_="finding",
    )  # fmt: skip


def _folder(page: OutputPage) -> Html:
    return drawings.definitions([
        ("folder", tag("code", page.folder)),
        *page.facts.items(),
        ("problem", tag("span", page.problem, class_="bad") if page.problem else ""),
    ])  # fmt: skip
