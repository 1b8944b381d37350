"""Versions of snapshots as users name them, and what `snaploom.read` reads for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

from snaploom.errors import ArgumentInvalid, ObjectNotFound
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos, format_instant, parse_instant, with_zone
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import Folder
from snaploom.output.history import NothingPublished, refuse_empty, version_at, versions_between
from snaploom.output.state import Ended, FolderState, Version

# Parses `TIME`, `TIME@NUMBER` and `TIME@dry-run`, which choose a version of a snapshot.

DRY_RUN = "dry-run"
"""Text after the `@` of a snapshot that is woven and not published."""
_LISTED = "'snaploom snapshots' lists the times of snapshots, and numbers of manifests"


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """One version of a snapshot."""

    time: EpochNanos
    manifest: int | None = None
    """Sequence number as of which it is read; None for the newest."""
    is_dry_run: bool = False
    """Whether it is woven from the sources as they are now, and not read."""

    @classmethod
    def parse(cls, version: Time, argument: str) -> VersionChoice:
        """Parse a version, else `ArgumentInvalid` for `argument`."""
        if not isinstance(version, str) or "@" not in version:
            return cls(instant_of(version, argument))
        text, _, suffix = version.rpartition("@")
        if suffix == DRY_RUN:
            return cls(instant_of(text, argument), is_dry_run=True)
        if not (suffix.isascii() and suffix.isdigit() and 0 < len(suffix) < 19):
            raise ArgumentInvalid(
                "this is not a version of a snapshot",
                path=argument,
                found=version,
                expected=f"TIME, TIME@NUMBER with the number of a manifest, or TIME@{DRY_RUN}",
                hint=_LISTED,
            )
        return cls(instant_of(text, argument), int(suffix))

    def record(self, folder: Folder, newest: FolderState, argument: str) -> SnapshotRecord:
        """Return the record of a published version whose files exist."""
        state = newest if self.manifest is None else folder.log.read(self.manifest)
        if self.time not in state.versions:
            at = "" if self.manifest is None else f" at manifest {self.manifest}"
            raise ArgumentInvalid(
                f"no live snapshot has this time{at}",
                path=argument,
                found=format_instant(self.time),
                expected="the time of a published snapshot",
                hint=_LISTED,
            )
        version = state.versions[self.time]
        gone = _removed_file(folder.store, newest, version)
        if gone:
            raise ObjectNotFound(
                f"files of this version of {format_instant(version.time)} are removed",
                found=f"no {gone}",
                expected="a version that is live, or ended less than `readerGrace` ago",
                hint="compare other versions; 'snaploom snapshots' shows which have ended",
            )
        return state.live[self.time]


def _removed_file(
    store: ObjectStore, newest: FolderState, version: SnapshotRecord | Version
) -> str:
    """Key of a file of a version that ended, and is gone since; empty where all are there."""
    live = newest.versions.get(version.time)
    if live is not None and live.seq == version.seq:
        return ""
    files = newest.records.at(version.seq, version.time).files
    return next((file.path for file in files if store.head(file.path) is None), "")


# The state as it was known at a moment: two times of every question, `at` and `known_at`.


def known_state(state: FolderState, moment: EpochNanos, uri: str) -> FolderState:
    """Return the state with the versions that were published, and had not ended, at a moment.

    Moments are those that manifests record. The versions of one snapshot follow each other as
    their entries do: none is known before those before it ended, whatever clocks were wrong, so
    that a question about the past has the same answer after every later publication.

    Raises:
        NothingPublished: there was no snapshot then.
    """
    if not state.ended:
        refuse_empty(state, uri)
    ended: list[Ended] = []
    later: dict[EpochNanos, Ended] = {}
    for end in state.ended:
        if end.time not in later and end.deleted_at <= moment:
            ended.append(end)
        else:
            later.setdefault(end.time, end)
    versions = dict(state.versions)
    for time, end in later.items():
        versions[time] = Version.of(state.records.at(end.published_seq, time))
    known = {time: each for time, each in versions.items() if each.created_at <= moment}
    if not known:
        raise _nothing_known(state, moment, uri)
    return replace(state, versions=known, ended=tuple(ended))


def _nothing_known(state: FolderState, moment: EpochNanos, uri: str) -> NothingPublished:
    published = ((version.seq, version.time) for version in state.versions.values())
    since = ((end.published_seq, end.time) for end in state.ended)
    first = state.records.at(*min((*published, *since))).created_at
    began = f"the first was published at {format_instant(first)}"
    return NothingPublished(
        f"{uri} had no snapshot at {format_instant(moment)}",
        found=began if first > moment else "all that was published had been deleted",
        expected="a time at which a snapshot was published",
        hint="'snaploom snapshots' shows when each was",
    )


def refuse_removed(
    store: ObjectStore,
    newest: FolderState,
    moment: EpochNanos,
    choose: Callable[[FolderState], Iterable[SnapshotRecord | Version]],
) -> None:
    """Raise `ObjectNotFound` if what is chosen of a known state has files that are gone.

    The error has the time from which on the same choice is kept.
    """
    since, first = moment, ""
    ends = {end.published_seq: end.deleted_at for end in newest.ended}
    while True:
        try:
            chosen = choose(known_state(newest, since, store.uri))
        except NothingPublished:
            break  # nothing was known from then on, of which nothing can be gone
        gone = [(each, key) for each in chosen if (key := _removed_file(store, newest, each))]
        if not gone:
            break
        first = first or gone[0][1]
        since = max(ends[each.seq] for each, _ in gone)
    if first:
        raise ObjectNotFound(
            f"snapshots as they were known at {format_instant(moment)} are removed",
            found=f"no {first}",
            expected=f"a time from {format_instant(since)} on: what was known since is kept",
            hint="a longer outputFolder.readerGrace keeps what is replaced or deleted from now on",
        )


# Meaning of `at`, `between`, `manifest` and `known_at` of `snaploom.read`.

Time = str | datetime | date
"""ISO 8601 text with `Z` or an offset, an aware datetime, or a date or its text (midnight, UTC)."""

EXPECTED = (
    "ISO 8601 with Z or an offset, such as 2020-01-31T12:00:00Z, a datetime with a time zone, "
    "or a date, such as 2020-01-31, which is midnight in UTC"
)
_PAIR = "two times, the first and the last, such as ('2020-01-01', '2020-01-31')"
_LISTED_SNAPSHOTS = "'snaploom snapshots' lists the times of snapshots"


@dataclass(frozen=True, slots=True)
class ReadChoice:
    """Choice of snapshots to read; all of them by default."""

    at: EpochNanos | None = None
    """Only the newest until then."""
    between: tuple[EpochNanos, EpochNanos] | None = None
    """Only those from one time to another, both inclusive."""
    known_at: EpochNanos | None = None
    """As they were published at this time; None as they are."""

    @classmethod
    def parse(cls, at: object, between: object, known_at: object = None) -> ReadChoice:
        """Parse the arguments."""
        if at is not None and between is not None:
            raise ArgumentInvalid(
                "one time and a range of times are asked for at once",
                path="at",
                found=f"at={_shown(at)} and between={_shown(between)}",
                expected="either `at` or `between`, not both",
                hint="leave out `between` for one snapshot, or `at` for all snapshots of a range",
            )
        return cls(
            None if at is None else instant_of(at, "at"),
            None if between is None else range_of(between),
            None if known_at is None else instant_of(known_at, "known_at"),
        )

    def of(self, state: FolderState) -> tuple[Version, ...]:
        """Chosen snapshots in short, possibly none; `NothingPublished` before the first."""
        if self.at is not None:
            return (version_at(state, self.at),)
        if self.between is not None:
            return versions_between(state, *self.between)
        return state.timeline


def refuse_number(manifest: object, known_at: EpochNanos | None = None) -> None:
    """Raise `ArgumentInvalid` for anything but None or a whole number from 0, and for two pasts."""
    if manifest is not None and known_at is not None:
        raise ArgumentInvalid(
            "the past is asked for twice",
            path="known_at",
            found=f"manifest={_shown(manifest)} and known_at={format_instant(known_at)}",
            expected="either a number or a time of what was published",
            hint="leave out one of the two",
        )
    if manifest is None or (type(manifest) is int and manifest >= 0):
        return
    raise ArgumentInvalid(
        "this is not the number of a manifest",
        path="manifest",
        found=_shown(manifest),
        expected="a whole number, or None for the newest",
        hint="'snaploom snapshots' shows the number of the newest",
    )


def range_of(between: object) -> tuple[EpochNanos, EpochNanos]:
    """First and last instant of a range, else `ArgumentInvalid`."""
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise ArgumentInvalid(
            "this is not a range of times",
            path="between",
            found=_shown(between),
            expected=_PAIR,
            hint="give both ends, or `at` for the newest snapshot until a time",
        )
    first, last = (instant_of(time, f"between[{n}]") for n, time in enumerate(between))
    if last < first:
        raise ArgumentInvalid(
            "this range ends before it begins",
            path="between",
            found=f"from {format_instant(first)} to {format_instant(last)}",
            expected="the earlier time first; both ends are inclusive",
            hint="exchange the two",
        )
    return first, last


def instant_of(time: object, argument: str) -> EpochNanos:
    """Return the instant of a `Time` with a zone, else `ArgumentInvalid` for `argument`."""
    match time:
        case str():
            return _of_text(time, argument)
        case datetime() if time.tzinfo is None:
            whole = with_zone(time.isoformat())
            hint = f"for UTC, write '{whole}'" if whole else _LISTED_SNAPSHOTS
            raise _not_a_time("this time has no time zone", time, argument, hint)
        case datetime():
            return _of_text(time.isoformat(), argument)
        case date():
            return _of_text(f"{time.isoformat()}T00:00:00Z", argument)
    raise _not_a_time("this is not a time", time, argument, _LISTED_SNAPSHOTS)


def _of_text(text: str, argument: str) -> EpochNanos:
    for form in (text, f"{text}T00:00:00Z"):
        try:
            return parse_instant(form)
        except ValueError:
            continue
    whole = with_zone(text)
    hint = f"write {whole} if UTC is meant" if whole else _LISTED_SNAPSHOTS
    raise _not_a_time("this is not a time", text, argument, hint)


def _not_a_time(message: str, time: object, argument: str, hint: str) -> ArgumentInvalid:
    return ArgumentInvalid(message, path=argument, found=_shown(time), expected=EXPECTED, hint=hint)


def _shown(value: object) -> str:
    text = repr(value)
    short = text if len(text) <= 100 else f"{text[:100]} ..."
    return f"{short} ({type(value).__name__})"
