"""The contract of an output from what its folder holds, and whether another one is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from snaploom import ondemand
from snaploom.errors import ArgumentInvalid
from snaploom.jobs.contracts.contractcheck import Deviation, Verdict, deviations, statements
from snaploom.jobs.contracts.contractdocument import (
    FIRST_VERSION,
    PublishedTable,
    contract_document,
)
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle
from snaploom.planning.calendar import plus_bounded
from snaploom.planning.plan import plan_offline
from snaploom.planning.schemas import Struct, parse_schema
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.folder import is_unused, open_folder
from snaploom.storage.history import refuse_empty, with_partition
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.schemadocuments import read_schema
from snaploom.storage.state import EMPTY

ReadContract = Callable[[Path], Mapping[str, JsonValue]]


def output_contract(
    bundle: Bundle, store: ObjectStore, version: str = FIRST_VERSION
) -> dict[str, JsonValue]:
    """The contract of what an output publishes now.

    Args:
        bundle: the output; nothing is wrong with it.
        store: of its folder.
        version: of the contract.

    Raises:
        NothingPublished: types are known from published data only, and there is none.
        FolderNotOurs, ManifestCorrupt: the folder cannot be read.
    """
    return _current(bundle, store, version)[0]


def contract_deviations(
    contract: Mapping[str, JsonValue], bundle: Bundle, store: ObjectStore, now: EpochNanos
) -> tuple[Deviation, ...]:
    """Where a contract and an output differ, those that break the contract first.

    Args:
        contract: valid by the standard.
        bundle: the output; nothing is wrong with it.
        store: of its folder.
        now: the instant at which the newest snapshot has its age.

    Raises:
        ArgumentInvalid: the contract is about something else.
        NothingPublished, FolderNotOurs, ManifestCorrupt: as `output_contract`.
    """
    current, newest = _current(bundle, store, FIRST_VERSION)
    tables = contract.get("schema")
    listed = tables if isinstance(tables, list) else []
    names = [str(one.get("name")) for one in listed if isinstance(one, dict)]
    if bundle.output.name not in names:
        raise ArgumentInvalid(
            "the contract is about something else",
            path="schema",
            found=", ".join(names) or "no object",
            expected=f"an object named {bundle.output.name}",
            hint="name the contract of this output, or write one with 'snaploom contract'",
        )
    found = deviations(contract, current)
    kept = statements(contract, current)
    broken = tuple(_of_data(kept, bundle, newest, now))
    return (*broken, *found)


def contract_reader() -> ReadContract:
    """Reads contracts from files.

    Raises:
        ArgumentInvalid: the library of the standard is not installed.
    """
    try:
        return ondemand.read_contract
    except ModuleNotFoundError as error:
        if error.name != "open_data_contract_standard":
            raise
        raise ArgumentInvalid(
            "contracts are judged by the library of the standard, which is not installed",
            path="--check",
            found="no open-data-contract-standard",
            expected="the extra `contracts`",
            hint="pip install 'snaploom[contracts]'",
        ) from None


def _current(
    bundle: Bundle, store: ObjectStore, version: str
) -> tuple[dict[str, JsonValue], SnapshotRecord]:
    state = EMPTY if is_unused(store) else open_folder(store).log.read()
    settings = refuse_empty(state, store.uri)
    newest = state.snapshots[-1]
    fields = parse_schema(
        with_partition(read_schema(store, newest.schema_hash), settings), ""
    ).fields
    table = PublishedTable(bundle, plan_offline(bundle).tree, Struct(fields[:-1], ""), fields[-1])
    return contract_document(table, version), newest


def _of_data(
    kept: Mapping[str, str], bundle: Bundle, newest: SnapshotRecord, now: EpochNanos
) -> Iterator[Deviation]:
    """Promises that are declared as promised, and that the newest snapshot breaks."""
    freshness = bundle.output.spec.run.freshness
    latency = kept.get("service level latency")
    if freshness is not None and latency is not None:
        schedule = bundle.output.spec.run.schedule
        zone = schedule.time_zone if schedule is not None else "UTC"
        if plus_bounded(newest.created_at, freshness.max_age, zone) < now:
            found = f"the newest snapshot published at {format_instant(newest.created_at)}"
            yield Deviation(Verdict.BROKEN, "service level latency", latency, found)
    for check in newest.checks:
        if not check.holds and f"check {check.name}" in kept:
            found = f"{check.measured} in {format_instant(newest.time)}"
            yield Deviation(Verdict.BROKEN, f"check {check.name}", "that it holds", found)
