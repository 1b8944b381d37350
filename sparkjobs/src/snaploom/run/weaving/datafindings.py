"""Faults and changes in the data that snapshots are woven from; without Spark."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

from snaploom.errors import SnaploomError, SourceError, StorageError
from snaploom.files.listed import ListedFile, SparkNeeded
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.datarelationship import UnmatchedRows
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import (
    MOST_DATA_SAMPLES,
    NOT_COUNTED,
    DataFinding,
    DataFindingKind,
    ExclusionReason,
)
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import Folder
from snaploom.output.manifest import read_schema
from snaploom.output.state import FolderState
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import SourceSnapshots, gaps_of, settings_of
from snaploom.plan.plan import RunPlan
from snaploom.plan.steps import choose
from snaploom.plan.tree import JoinTree
from snaploom.policy.references import DATA
from snaploom.sources.files.declared import FileSource
from snaploom.sources.files.globs import names_beside
from snaploom.sources.registry import declared
from snaploom.sources.sourcefiles import SourceFiles, shapes_of, snapshot_fingerprint
from snaploom.types.schemas import Array, Field, Map, Struct, Type, parse_schema, struct_at

MOST_COMPARED = 400
"""Published snapshots, the newest ones, whose files are compared: more than a year of days."""
MOST_COMPARED_ELSEWHERE = 60
"""The same where each costs requests to a store: its entry in the manifest, and its folder."""


def snapshot_findings(
    bundle: Bundle,
    tree: JoinTree,
    record: SnapshotRecord,
    unmatched: Iterable[UnmatchedRows] = (),
) -> Iterator[DataFinding]:
    """Findings in the counts of a published snapshot and in its rows without a match."""
    looked_at = {one.child: one for one in unmatched}
    others = bundle.output.spec.data_model.other_data_sources
    silent = {other.field_name for other in others if other.warn_no_match is False}
    sources = {node.field_name: node.source for node in tree.nodes}
    keys = {node.field_name: node.relationship for node in tree.nodes}
    time = format_instant(record.time)
    finding = partial(DataFinding, first=time, last=time)
    again = f"snaploom restate {bundle.output.name} -f FILES --time {time} --acknowledge-readers"
    if not record.rows:
        yield finding(
            kind=DataFindingKind.EMPTY, source=tree.root.source, count=1, samples=(time,),
            fix=f"if it should have some, write its files again, then {again}",
        )  # fmt: skip
    for join in record.joins:
        source, left = sources.get(join.child, ""), join.left or tree.root.source
        if join.child in silent:
            continue
        right = f"if that is right, set warnNoMatch: false for {join.child} in otherDataSources"
        if join.unmatched > 0:
            rows = looked_at.get(join.child)
            near = rows.near_misses if rows else ()
            steps = next((", ".join(one.normalize) for one in near if not one.ambiguous), "")
            fix = f"deliver these rows of {source}, or correct their keys in {left}; {right}"
            if steps:
                fix = f"add normalize: [{steps}] to joinKey in DataRelationship/{keys[join.child]}"
            samples, about = (rows.keys, _near_miss(rows)) if rows else ((), "")
            if join.beyond_tolerance:
                late = f"{join.beyond_tolerance:,} beyond the tolerance"
                about = f"{about}; {late}" if about else late
            yield finding(
                kind=DataFindingKind.UNMATCHED, source=source, field_name=join.child, left=left,
                count=join.unmatched, of=join.in_, samples=samples, about=about, fix=fix,
            )  # fmt: skip
        nulls = {
            DataFindingKind.NULL_KEYS: join.null_keys,
            DataFindingKind.NULL_TIMES: join.null_times or 0,
        }
        for kind, count in nulls.items():
            if count > 0:
                yield finding(
                    kind=kind, source=source, field_name=join.child, left=left, count=count,
                    of=join.in_, fix=f"write what is missing in {left}; {right}",
                )  # fmt: skip
    for one in record.excluded:
        if one.reason is ExclusionReason.SNAPSHOT_MISSING:
            yield finding(
                kind=DataFindingKind.MISSING, source=sources.get(one.field_name, ""),
                field_name=one.field_name, count=1, samples=(time,),
                fix=f"deliver it, or lengthen snapshot.timeBefore there; then {again}",
            )  # fmt: skip


def _near_miss(unmatched: UnmatchedRows) -> str:
    """The number of these rows that would match under the best normalisation, for people."""
    if unmatched.not_counted:
        return f"{NOT_COUNTED}: {unmatched.not_counted}"
    others = unmatched.other_times or 0
    times = f"{others:,} have their key at other times" if others else ""
    if not unmatched.near_misses:
        return times
    best = unmatched.near_misses[0]
    steps = ", ".join(one.value for one in best.normalize)
    effect = "would" if unmatched.other_times is None else "would find their key"
    near = f"{best.rows:,} of {unmatched.rows:,} {effect} with normalize: [{steps}]"
    return f"{times}; {near}" if times else near


def column_findings(
    tree: JoinTree, before: Struct, after: Struct, time: EpochNanos
) -> Iterator[DataFinding]:
    """Columns of sources that came or went from one snapshot of the output to the next."""
    at = format_instant(time)
    for node in tree.nodes:
        path = (*tree.path(node.number), DATA)
        old, new = (
            {field.name.casefold(): field.name for field in struct_at(schema, path).fields}
            for schema in (before, after)
        )
        if not old or not new:
            continue  # one of the two does without the source
        for kind, there, other in (
            (DataFindingKind.NEW_COLUMNS, new, old),
            (DataFindingKind.GONE_COLUMNS, old, new),
        ):
            names = [there[name] for name in there if name not in other]
            if names:
                yield DataFinding(
                    kind=kind, source=node.source, field_name=node.field_name, count=len(names),
                    first=at, last=at, samples=tuple(names[:MOST_DATA_SAMPLES]),
                )  # fmt: skip


def newest_columns(folder: Folder, tree: JoinTree, time: EpochNanos) -> tuple[DataFinding, ...]:
    """Columns that came or went with a published snapshot; none where schemas cannot be read."""
    try:
        timeline = folder.log.read().timeline
        place = bisect_left(timeline, time, key=lambda version: version.time)
        if not place or timeline[place - 1].schema_hash == timeline[place].schema_hash:
            return ()
        before, after = (
            parse_schema(read_schema(folder.store, version.schema_hash), "")
            for version in timeline[place - 1 : place + 1]
        )
    except (StorageError, ValueError):
        return ()  # what is published is whole; only this note is lost
    return tuple(column_findings(tree, before, after, time))


def listed_findings(
    bundle: Bundle,
    plan: RunPlan,
    root: SourceSnapshots,
    state: FolderState,
    now: EpochNanos,
) -> Iterator[DataFinding]:
    """Intervals without a snapshot of the root, and snapshots of it that lie in no interval."""
    chosen = bundle.output.spec.data_model.root_data_source.snapshot_filter
    settings, source = settings_of(chosen), plan.tree.root.source
    times = [time for time in root.times if time <= now]
    gaps = gaps_of(settings, (*times, *state.versions, *state.tombstoned_times)) if times else ()
    if gaps:
        yield _of_times(
            DataFindingKind.MISSING, source, [gap.start for gap in gaps],
            count=sum(gap.intervals for gap in gaps),
            fix="deliver what is missing, and run again; where there is nothing on some days, "
            "snapshotFilter.fromCron leaves them out",
        )  # fmt: skip
    inside = {time for time, _ in settings.intervals.of_each(times)}
    outside = [t for t in times if t not in inside and not settings.excludes(t)]
    early = [time for time in outside if time < settings.intervals.start]
    field = "fromCron.startDate" if chosen.from_cron else "fromInterval.intervalStartDate"
    path = f"dataModel.rootDataSource.snapshotFilter.{field}"
    if early:
        start = format_instant(settings.intervals.start)
        yield _of_times(
            DataFindingKind.NEVER_DUE, source, early, about=f"intervals begin at {start}",
            fix=f"set {path} to {format_instant(early[0])} or earlier",
        )  # fmt: skip
    if len(outside) > len(early):
        yield _of_times(
            DataFindingKind.NEVER_DUE, source, outside[len(early) :],
            about="they lie between two intervals",
            fix="lengthen dataModel.rootDataSource.snapshotFilter.fromCron.length",
        )  # fmt: skip


def unread_findings(bundle: Bundle, files: SourceFiles) -> Iterator[DataFinding]:
    """Files that are named like those of a source, and that no source of the output reads."""
    sources = [(one.name, declared(one)) for one in bundle.data_sources]
    globs = {
        name: source.declared.globs for name, source in sources if isinstance(source, FileSource)
    }
    every = tuple(chain.from_iterable(globs.values()))
    listed: dict[str, list[ListedFile]] = {}
    for name, own in globs.items():
        with suppress(SnaploomError, SparkNeeded, OSError):  # a run names what it cannot list
            like, names = names_beside(own, every, files.others, listed)
            if names:
                yield DataFinding(
                    kind=DataFindingKind.UNREAD, source=name, count=len(names), snapshots=0,
                    samples=names[:MOST_DATA_SAMPLES],
                    fix=f"if they are data, write them as {like} is, or widen sourceUriGlobs and "
                    f"sourceUriPrefix of DataSource/{name}; else move them away",
                )  # fmt: skip


def changed_findings(
    bundle: Bundle,
    plan: RunPlan,
    state: FolderState,
    files: SourceFiles,
    listed: Mapping[str, SourceSnapshots],
    restated: EpochNanos | None = None,
) -> Iterator[DataFinding]:
    """Published snapshots whose files are not those that they were woven from any more.

    Files are compared by name, length, time and tag. Of a source whose columns are changed by
    transformers, only where the plan is the same still; so are the snapshots of a history, of which
    later ones may have come. `restated` is woven again anyway.
    """
    uri = bundle.output.spec.output_folder.folder_uri
    most = MOST_COMPARED if uri.startswith(("file:", "/")) else MOST_COMPARED_ELSEWHERE
    fields = {node.field_name: node.source for node in plan.tree.nodes}
    others = bundle.output.spec.data_model.other_data_sources
    histories = {other.field_name: other.snapshot for other in others if other.snapshot.history}
    chosen = settings_of(bundle.output.spec.data_model.root_data_source.snapshot_filter)
    now: dict[tuple[str, EpochNanos], str | None] = {}
    found: dict[str, list[EpochNanos]] = {}
    for version in state.timeline[-most:]:
        if version.time == restated:
            continue
        record = state.records.live(version)
        is_same = record.plan_hash == plan.hash
        for taken in record.sources:
            if fields.get(taken.field_name) != taken.source:
                continue
            if any(shapes_of(bundle, taken.source)) and not is_same:
                continue
            rule = histories.get(taken.field_name) if is_same else None
            zone, at = chosen.intervals.zone, record.time
            there = () if rule is None else choose(rule, listed[taken.source], at, at, zone)
            if not taken.fingerprints.keys() >= {*there}:
                found.setdefault(taken.field_name, []).append(record.time)
                continue
            for time, before in taken.fingerprints.items():
                key = (taken.source, time)
                if key not in now:
                    now[key] = _fingerprint(bundle, *key, files)
                if now[key] not in (None, before) and before:
                    found.setdefault(taken.field_name, []).append(record.time)
                    break
    for field_name, times in found.items():
        yield _of_times(
            DataFindingKind.CHANGED, fields[field_name], times, field_name=field_name,
            fix=f"snaploom restate {bundle.output.name} -f FILES --time "
            f"{format_instant(times[0])} --acknowledge-readers",
        )  # fmt: skip


def _fingerprint(bundle: Bundle, name: str, time: EpochNanos, files: SourceFiles) -> str | None:
    try:
        return snapshot_fingerprint(bundle, name, time, files)
    except (SourceError, SparkNeeded):
        return None  # what a run needs of it fails with its own message


def _of_times(
    kind: DataFindingKind,
    source: str,
    times: Sequence[EpochNanos],
    *,
    count: int | None = None,
    field_name: str = "",
    about: str = "",
    fix: str = "",
) -> DataFinding:
    shown = tuple(map(format_instant, times[:MOST_DATA_SAMPLES]))
    return DataFinding(
        kind=kind, source=source, field_name=field_name, count=count or len(times), samples=shown,
        snapshots=0, about=about, fix=fix,
    )  # fmt: skip


# Rows and keys that are shown to people, and the columns of which none is.

SAMPLE_ROWS = 5
"""Rows of the newest snapshot that its folder keeps for pages."""
LONGEST_ROW = 20_000
"""Characters of such a row as JSON; a longer one is left out."""
CONFIDENTIAL = "confidential"
"""Key in a column's metadata: none of its values is shown."""


def shows_samples(output: OutputDataset) -> bool:
    """Whether rows and keys may be shown: unless an annotation named `samples` is `none`."""
    annotations = output.metadata.annotations.items()
    return not any(key.split("/")[-1] == "samples" and text == "none" for key, text in annotations)


def is_confidential(field: Field) -> bool:
    """Whether no value of a column is to be shown."""
    return CONFIDENTIAL in json.loads(field.metadata or "{}")


def sample_texts(schema: Struct, rows: Iterable[object]) -> tuple[str, ...]:
    """Rows as JSON, without columns that are confidential, and without rows that are too long."""
    public = (_public(schema, row) for row in rows)
    texts = (json.dumps(row, default=str, ensure_ascii=False) for row in public)
    return tuple(text for text in texts if len(text) <= LONGEST_ROW)


def _public(type_: Type, value: object) -> object:
    if isinstance(type_, Struct) and isinstance(value, dict):
        fields = (field for field in type_.fields if not is_confidential(field))
        return {field.name: _public(field.type, value.get(field.name)) for field in fields}
    if isinstance(type_, Array) and isinstance(value, list):
        return [_public(type_.element, each) for each in value]
    if isinstance(type_, Map) and isinstance(value, dict):
        return {str(key): _public(type_.value, each) for key, each in value.items()}
    return value
