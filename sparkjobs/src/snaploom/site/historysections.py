"""The sections about history: events, volume, match rates, and ages of source snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from snaploom.site.charts import Axis, Series, chart, newest
from snaploom.site.markup import NOTHING, Html, join, table, tag
from snaploom.site.pagedata import OutputPage, size_of
from snaploom.site.quantities import counted, moment, number, share, size, span
from snaploom.site.snapshottable import lags_of
from snaploom.site.timeline import timeline
from snaploom.storage.replacement import REPLACED

SHOWN = 20
"""Lines of a list of events; the timeline has all."""
_DAY = 86_400 * 1_000_000_000


def timeline_section(page: OutputPage) -> Html:
    """The lanes, and each kind of event as a list, the newest first."""
    live = {record.time for record in page.snapshots}
    restated = [record for record in page.snapshots if record.replaces is not None]
    failed = [(run, each) for run in page.runs for each in run.failed]
    deleted = [one for one in page.ended if one.time not in live and one.rule != REPLACED]
    return join([
        timeline(page),
        _events("Gaps", ("from", "to", "intervals"), len(page.gaps), (
            (moment(gap.start), moment(gap.end),
             f"{gap.intervals:,}" + (" or more" if gap.is_bounded else ""))
            for gap in reversed(page.gaps)
        )),
        _events("Failed", ("snapshot", "reason", "message", "run"), len(failed), (
            (time, reason, message, tag("code", run.run))
            for run, (time, reason, message) in failed
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
    rows = [(line.name, _per_cent(_last(line)), _per_cent(_worst(line, min))) for line in matched]
    return join([
        tag("div",
            chart("match-chart", "Rows that found a match, the lowest first", times, matched,
                  Axis(_per_cent, min, None, 100)),
            chart("null-chart", "Rows with a NULL key, the highest first", times, nulls,
                  Axis(_per_cent, max, 0))
            or tag("p", "No row had a NULL key in any snapshot.", class_="quiet"),
            class_="charts"),
        table("Match rates", ("field", "matched now", "lowest"), rows, numbers=(1, 2)),
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
    """How old the snapshot of each source was when it was taken."""
    times = [record.time for record in page.snapshots]
    known = [dict(lags_of(record)) for record in page.snapshots]
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
        or tag("p", "Every source had a snapshot of the very time of the root's.",
               class_="quiet"),
        table("Age of source snapshots", ("field", "now", "most"), rows, numbers=(1, 2)),
    ])  # fmt: skip


def _days(value: float | None) -> str:
    if value is None:
        return "not taken"
    return span(int(value * _DAY)) if value else "same time"
