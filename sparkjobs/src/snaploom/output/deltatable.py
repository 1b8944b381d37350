"""The Delta table of an output: a log of versions, each made by one put-if-absent.

Delta's log is what our manifest log is, numbered documents that nobody replaces, and versions are
put here as entries are. A writer that was slower, ours or another one, finds its number taken, and
makes its change anew on top: no commit is lost. The table lies in `data/`, whose files it lists by
relative paths, and not in the output's folder: `VACUUM` takes everything below a table's place for
the table's, and would remove our manifest with the rest.

Nothing of a log is trusted that is not understood: versions that others wrote by a newer protocol
of Delta stop the run.
"""

import json
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast
from urllib.parse import quote, unquote
from uuid import uuid4

from pydantic import JsonValue

from snaploom import parquet
from snaploom.errors import HistoryIncompatible, PublicationError
from snaploom.files.objectstore import ObjectStore, refuse_links
from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos, now
from snaploom.output import layout
from snaploom.output.documents import TABLE_VERSION, NumberedLog, corrupt, get_bounded, parse_object
from snaploom.output.entries import SnapshotRecord, TombstoneRecord
from snaploom.output.icebergtable import COMMIT, LAST_COMMIT, REVOKED, TableChange, TableVersion
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.tablehistory import shown_again
from snaploom.types.schemas import (
    Array,
    Field,
    Map,
    Struct,
    Type,
    describe,
    parse_schema,
    schema_json,
)

_PROTOCOL: Mapping[str, JsonValue] = {"minReaderVersion": 1, "minWriterVersion": 2}
"""The versions of Delta's protocol that every reader knows: no features but the oldest."""
_KEPT: Mapping[str, JsonValue] = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.deletedFileRetentionDuration": "interval 3650 days",
}
"""Properties of a new table: its log stays whole, and only we remove files."""

_NO_COLUMNS = '{"type":"struct","fields":[]}'
_VERSION = re.compile(rf"{layout.DELTA_LOG}[0-9]{{20}}\.json")
_READ_AT_ONCE = 16
"""Versions of a log that are fetched at a time."""

Action = Mapping[str, JsonValue]


def delta_key(number: int) -> str:
    """Key of a version by its number in our logs, which begin at 1; those of Delta begin at 0."""
    return f"{layout.DELTA_LOG}{number - 1:020d}.json"


@dataclass
class _Replayed:
    """State of a table, as its log gives it up to a version."""

    number: int = 0
    metadata: Action = field(default_factory=dict)
    protocol: Action = field(default_factory=dict)
    files: dict[str, Action] = field(default_factory=dict)
    """Action that added each file, by its path below `data/`."""
    last_commit: str = ""
    revoked: set[str] = field(default_factory=set)
    """Runs that were revoked in any version: others may restore an older one."""

    def read(self, document: bytes, uri: str) -> None:
        """Go on with the next version, all of it or nothing."""
        name = f"{uri}{delta_key(self.number + 1)}"
        lines = [parse_object(line, name, TABLE_VERSION) for line in document.splitlines()]
        actions = [pair for line in lines for pair in line.items() if pair[1] is not None]
        if not all(isinstance(action, dict) for _, action in actions):
            raise corrupt(name, "an action that is no object")
        self.number += 1
        for kind, action in actions:
            self._take(kind, cast(Action, action))

    def _take(self, kind: str, action: Action) -> None:
        path = unquote(str(action.get("path", "")))
        match kind:
            case "metaData":
                self.metadata = action
            case "protocol":
                self.protocol = action
            case "add":
                self.files[path] = action
            case "remove":
                self.files.pop(path, None)
            case "commitInfo":
                ours = _object(action.get("userMetadata"))
                self.last_commit = str(ours.get(COMMIT, self.last_commit))
                self.revoked.update(str(ours.get(REVOKED, "")).split())
            case _:
                pass

    def fault(self, change: TableChange | None = None) -> str:
        """The reason not to write to the table, or to make a change; empty if there is none."""
        if any(self.protocol.get(key) != value for key, value in _PROTOCOL.items()):
            return f"protocol {json.dumps(self.protocol)}"
        if "delta.invariants" in str(self.metadata.get("schemaString")):
            return "rules for values of columns (delta.invariants)"
        if change is not None and self.metadata.get("partitionColumns") != [change.field_name]:
            return f"partition columns {json.dumps(self.metadata.get('partitionColumns'))}"
        configured = self.metadata.get("configuration")
        is_kept = isinstance(configured, dict) and configured.get("delta.appendOnly") == "true"
        return "delta.appendOnly" if change is not None and change.ended and is_kept else ""


def _object(text: JsonValue) -> Action:
    """Content of a text that is an object of JSON, as our `userMetadata`; else empty."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class DeltaTable:
    """`OutputTable` by Delta's log."""

    store: ObjectStore
    _replayed: _Replayed = field(default_factory=_Replayed, compare=False, repr=False)

    @property
    def _log(self) -> NumberedLog:
        return NumberedLog(self.store, delta_key, TABLE_VERSION.length, CommitOutcomeUnknown)

    def read(self) -> TableVersion | None:
        """As `OutputTable.read`; `PublicationError` where others made it what is not understood."""
        known = self._replayed
        for document in self._listed():
            known.read(document, self.store.uri)
        for document in self._log.after(known.number):
            known.read(document, self.store.uri)
        if not known.number:
            return None
        self._refuse(known.fault())
        ours = {LAST_COMMIT: known.last_commit, REVOKED: " ".join(known.revoked)}
        return TableVersion(known.number, {"properties": {**ours}})

    def _listed(self) -> Iterator[bytes]:
        """All versions that there are, where none was read before; several at once."""
        if self._replayed.number:
            return
        keys = sorted(i.key for i in self.store.list(layout.DELTA_LOG) if _VERSION.fullmatch(i.key))
        for number, key in enumerate(keys, start=1):
            if key != delta_key(number):
                raise corrupt(
                    f"{self.store.uri}{delta_key(number)}", "nothing, though later ones are"
                )
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            yield from pool.map(partial(get_bounded, self.store, bounds=TABLE_VERSION), keys)

    def begin(self, schema: str, field_name: str) -> None:
        metadata: dict[str, JsonValue] = {
            "id": str(uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _with_columns(_NO_COLUMNS, schema, field_name),
            "partitionColumns": [field_name],
            "configuration": dict(_KEPT),
            "createdTime": _millis(),
        }
        first: list[Action] = [{"protocol": dict(_PROTOCOL)}, {"metaData": metadata}]
        self._append(1, "CREATE TABLE", {}, first)

    def before(self, version: TableVersion) -> str:
        """As `OutputTable.before`; empty before the first."""
        return version.properties[LAST_COMMIT]

    def put(self, version: TableVersion, change: TableChange, commit: str) -> bool:
        known = self._replayed
        if known.number != version.number:
            return False
        self._refuse(known.fault(change))
        refuse_links(self.store, [one.path for each in change.added.values() for one in each])
        actions = [*_evolved(known, change), *_removed(known, change), *_added(change)]
        kind = "WRITE" if change.added else "DELETE"
        return self._append(version.number + 1, kind, change.summary, actions)

    def revoke(self, run_ids: frozenset[str], now: EpochNanos) -> None:
        summary = {REVOKED: " ".join(sorted(run_ids))}
        while (version := self.read()) is not None and not run_ids <= version.revoked:
            self._append(version.number + 1, "WRITE", summary, [])

    def forget(
        self, ended: Collection[TombstoneRecord], files: Collection[str], now: EpochNanos
    ) -> None:
        """As `OutputTable.forget`: the log keeps every version, so that there is nothing to do."""
        self.refuse_held(ended, files)

    def refuse_held(self, ended: Collection[TombstoneRecord], files: Collection[str]) -> None:
        """As `OutputTable.refuse_held`: others may have made an ended version live again."""
        self.read()
        held = [
            key for key in sorted(files) if key.removeprefix(layout.DATA) in self._replayed.files
        ]
        if held:
            raise shown_again(self.name, held)

    @property
    def name(self) -> str:
        return f"{self.store.uri}{layout.DATA}"

    def rows(self, field_name: str, published: Iterable[SnapshotRecord]) -> Mapping[str, int]:
        """Rows that the version read last shows, by value of the partition column.

        Those of a snapshot that has the files with which it was published are as many as then.
        """
        shown = defaultdict[str, dict[str, Action]](dict)
        for path, added in self._replayed.files.items():
            values = added.get("partitionValues")
            value = values.get(field_name) if isinstance(values, dict) else None
            shown[str(value)][f"{layout.DATA}{path}"] = added
        ours = {layout.partition_value(one.partition): one for one in published}
        return {
            value: ours[value].rows
            if value in ours and files.keys() == {file.path for file in ours[value].files}
            else sum(self._rows_of(*file) for file in files.items())
            for value, files in shown.items()
        }

    def _rows_of(self, key: str, added: Action) -> int:
        rows = _object(added.get("stats")).get("numRecords")
        if isinstance(rows, int):
            return rows
        info = self.store.head(key)
        footer = None if info is None else parquet.read_footer(self.store, info)
        return 0 if footer is None else footer.rows

    def _append(
        self, number: int, operation: str, summary: Mapping[str, str], actions: list[Action]
    ) -> bool:
        info: dict[str, JsonValue] = {
            "timestamp": _millis(),
            "operation": operation,
            "operationParameters": {},
            "engineInfo": "Snaploom",
            "txnId": secrets.token_hex(16),
            "isBlindAppend": bool(actions) and all("add" in action for action in actions),
        }
        if summary:
            info["userMetadata"] = json.dumps(dict(summary))
        lines = (
            json.dumps(action, separators=(",", ":")) for action in [{"commitInfo": info}, *actions]
        )
        return self._log.append(number, "".join(f"{line}\n" for line in lines).encode())

    def _refuse(self, fault: str) -> None:
        if fault:
            raise PublicationError(
                f"the Delta table in {self.name} has what we do not write",
                found=fault,
                expected=f"protocol {json.dumps(_PROTOCOL)}, and the table's own partitions",
                hint="take back what another writer set, as by ALTER TABLE ... DROP FEATURE, or "
                "publish to a new folder",
            )


def _millis() -> int:
    return now() // NANOS_PER_MILLISECOND


def _evolved(known: _Replayed, change: TableChange) -> Iterator[Action]:
    """New metadata, where the table lacks columns that a change has."""
    if not change.schema:
        return
    table = str(known.metadata.get("schemaString"))
    try:
        wanted = _with_columns(table, change.schema, change.field_name)
    except ValueError as error:
        raise corrupt(layout.DELTA_LOG, f"a schema that Spark does not have: {error}") from error
    if json.loads(wanted) != json.loads(table):
        yield {"metaData": {**known.metadata, "schemaString": wanted}}


def _removed(known: _Replayed, change: TableChange) -> Iterator[Action]:
    ended = [{change.field_name: value} for value in change.ended]
    for added in known.files.values():
        if added.get("partitionValues") in ended:
            taken = {key: added[key] for key in ("path", "partitionValues", "size") if key in added}
            general = {"deletionTimestamp": _millis(), "dataChange": True}
            yield {"remove": {**taken, **general, "extendedFileMetadata": True}}


def _added(change: TableChange) -> Iterator[Action]:
    for value, records in change.added.items():
        for record in records:
            yield {"add": {
                "path": quote(record.path.removeprefix(layout.DATA), safe="/="),
                "partitionValues": {change.field_name: value},
                "size": record.bytes,
                "modificationTime": _millis(),
                "dataChange": True,
            }}  # fmt: skip


def _with_columns(table: str, wanted: str, last: str) -> str:
    """The columns of a table and those of a change, as `StructType.json()` gives them.

    Raises:
        HistoryIncompatible: a column has another type, or its name in other letters.
    """
    joined = _union(parse_schema(table, "the table"), parse_schema(wanted, ""), "")
    assert isinstance(joined, Struct)  # rows are structs
    fields = sorted(joined.fields, key=lambda one: one.name == last)
    return schema_json(replace(joined, fields=tuple(fields)))


def _union(table: Type | None, new: Type, path: str) -> Type:
    """A type that reads files with either, all parts of which may be NULL."""
    match table, new:
        case Struct() | None, Struct():
            known = {} if table is None else {one.name.casefold(): one for one in table.fields}
            for one in new.fields:
                before = known.get(one.name.casefold(), Field(one.name, one.type, True, "{}"))
                if before.name != one.name:
                    message = f"{path}{one.name} is {before.name} in the table, in other letters"
                    raise _incompatible(message)
                old = before.type if one.name.casefold() in known else None
                type_ = _union(old, one.type, f"{path}{one.name}.")
                known[one.name.casefold()] = replace(before, type=type_, nullable=True)
            return Struct(tuple(known.values()), "")
        case Array() | None, Array():
            element = None if table is None else table.element
            return Array(_union(element, new.element, path), True, "")
        case Map() | None, Map():
            key, value = (None, None) if table is None else (table.key, table.value)
            return Map(_union(key, new.key, path), _union(value, new.value, path), True, "")
    if table is not None and describe(table) != describe(new):
        here, there = describe(new), describe(table)
        raise _incompatible(f"{path.removesuffix('.')} is {here}, and {there} in the table")
    return new


def _incompatible(found: str) -> HistoryIncompatible:
    return HistoryIncompatible(
        "the snapshot does not fit the output's Delta table",
        found=found,
        expected="columns with the names and types that they had, or new ones",
        hint="shape the columns with a FieldTransformer, or publish to a new folder",
    )
