"""The store in OpenSearch, and OpenSearch as a base of skipping indexes."""

import hashlib
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from snaploom import errors
from snaploom.confidential import remember_secret
from snaploom.models.common import EpochNanos
from snaploom.output.documents import rebased
from snaploom.plugins.flint import documents, segments
from snaploom.plugins.flint.client import Json, OpenSearchClient, field_at
from snaploom.plugins.flint.metadata import (
    FILE_PATH,
    OWN,
    FlintForm,
    document_id,
    file_uri,
    index_name,
    is_index_name,
    path_index_name,
    render_metadata,
)
from snaploom.plugins.flint.options import OpenSearchOptions, RefreshPolicy, parse_options
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.stores import folder, port

_log = logging.getLogger(__name__)


# The store in OpenSearch: one index in Flint's form, and a shared one of our own beside it.

OWN_INDEX = "snaploom_skipping"
"""The shared index of states, removed paths and completing rows."""

_OWN_MAPPING: Json = {
    "dynamic": "false",
    "properties": {
        "index": {"type": "keyword"},
        "document": {"type": "object", "enabled": False},
        OWN: documents.ROW_MAPPING,
    },
}


class OpenSearchIndexStore:
    """One skipping index in OpenSearch; behind the port `IndexStore`."""

    def __init__(
        self,
        client: OpenSearchClient,
        name: str = "",
        form: FlintForm = FlintForm.TODAY,
        key: str = "",
    ) -> None:
        self._client = client
        self._name = name
        self._form = form
        self._key = key or name

    @property
    def uri(self) -> str:
        return f"{self._client.options.uri}/{self._key}"

    def read(self) -> port.StoredState:
        found = self._client.get(OWN_INDEX, self._key)
        return port.NOTHING if found is None else self._parsed(found.source)

    def commit(
        self, build: Callable[[port.StoredState], port.StoredState | None]
    ) -> port.StoredState:
        try:
            self._client.create_index(OWN_INDEX, _OWN_MAPPING)
            before, after = rebased(lambda: self._attempt(build), self._contended)
        finally:
            folder.note_commit(self.uri)
        if before.version != after.version:
            self._show(before, after)
        return after

    def write_rows(
        self, rows: Iterable[pa.Table], definition: SkippingDefinition
    ) -> list[port.Segment]:
        """Write whole rows as one segment, and rows that complete others as another."""
        shown = self._prepare(definition)
        writer = segments.RowWriter(
            self._client, self._name, OWN_INDEX, self._key, definition, shown
        )
        for table in rows:
            writer.write(table)
        return writer.finish()

    def write_removed(self, paths: Sequence[str], definition: SkippingDefinition) -> port.Segment:
        self._prepare(definition)
        return segments.write_removed_paths(self._client, self._key, OWN_INDEX, paths)

    def open(self, state: port.StoredState) -> FileTable:
        """The rows of a state; identities are read now, columns when they are needed."""
        if state.definition is None:
            return FileTable.of(pa.schema(list(IDENTITY_FIELDS)).empty_table())
        self._find_name(state.definition)
        return folder.assemble(self._parts(state.segments, state.definition), state.definition)

    def sweep(self, keep: port.StoredState, older_than: EpochNanos) -> tuple[int, int]:
        """Delete documents of segments that are not needed, and give Flint's ids back."""
        self.read()
        old = {"range": {f"{OWN}.written_at": {"lt": older_than}}}
        ours = {"bool": {"filter": [old, {"term": {"index": self._key}}]}}
        listed = [(self._name, hit) for hit in self._listed(self._name, old)]
        listed += [(OWN_INDEX, hit) for hit in self._listed(OWN_INDEX, ours)]
        # The state is read after the listing: a segment that it does not name is not in the list.
        needed = {segment.name for state in (keep, self.read()) for segment in state.segments}
        count = 0
        for index in (self._name, OWN_INDEX):
            dead = [
                segments.Write(segments.Action.DELETE, document_id=hit.document_id)
                for place, hit in listed
                if place == index and hit.source[OWN]["segment"] not in needed
            ]
            segments.write_documents(self._client, index, dead)
            count += len(dead)
        if count:
            self._give_ids_back(needed)
        return count, 0

    def destroy(self) -> None:
        self.read()
        if self._name:
            self._refuse_others_index()
            self._client.delete_index(self._name)
        query = {"term": {"index": self._key}}
        dead = (
            segments.Write(segments.Action.DELETE, document_id=hit.document_id)
            for hit in self._listed(OWN_INDEX, query)
        )
        segments.write_documents(self._client, OWN_INDEX, dead)

    def compact(self, state: port.StoredState) -> tuple[port.Segment, ...]:
        """Write the newest segments again as one, as far back as they are small."""
        start = folder.rewritten_from(state.segments)
        if state.definition is None or start == len(state.segments):
            return state.segments
        parts = self._parts(state.segments[start:], state.definition)
        files = folder.assemble(parts, state.definition)
        # With the columns of all indexes, unknown ones too, the rows are whole.
        names = [name for name, _ in IDENTITY_FIELDS]
        names += documents.kept_columns(state.definition.indexes)
        rows = pa.table({name: files.column(name) for name in names})
        written = self.write_rows([rows], state.definition)
        gone = folder.removed_paths(parts)
        if start and len(gone):
            written.insert(0, self.write_removed(gone.to_pylist(), state.definition))
        return (*state.segments[:start], *written)

    def _attempt(
        self, build: Callable[[port.StoredState], port.StoredState | None]
    ) -> tuple[port.StoredState, port.StoredState] | None:
        found = self._client.get(OWN_INDEX, self._key)
        before = port.NOTHING if found is None else self._parsed(found.source)
        successor = build(before)
        if successor is None:
            return before, before
        after = replace(successor, version=before.version + 1)
        text = port.format_state(after, secrets.token_hex(8)).decode()
        self._find_name(after.definition)
        document = {"state": text, "rows": self._name}
        source = {"index": self._key, "document": document}
        is_put = self._client.put(OWN_INDEX, self._key, source, found) or self._holds(document)
        return (before, after) if is_put else None

    def _contended(self, races: int) -> errors.IndexBusy:
        return errors.IndexBusy(f"other writers took {races} states in a row in {self.uri}")

    def _holds(self, document: Json) -> bool:
        found = self._client.get(OWN_INDEX, self._key)
        return found is not None and found.source.get("document") == document

    def _find_name(self, definition: SkippingDefinition | None) -> None:
        if not self._name and definition is not None:
            target = definition.target
            named = index_name(target.table, self._form) if target.table else ""
            self._name = named or path_index_name(target.uri)

    def _parsed(self, source: Json) -> port.StoredState:
        document = source.get("document")
        found = document if isinstance(document, dict) else {}
        name = f"the state of {self.uri}"
        text, rows = found.get("state"), found.get("rows", "")
        if not isinstance(text, str) or not isinstance(rows, str):
            raise port.damaged_state(name, "no text")
        if rows and not is_index_name(rows):
            raise port.damaged_state(name, f"rows in the index {rows}, which is no skipping index")
        state = port.parse_state(text.encode("utf-8", "surrogatepass"), name, self._key)
        if rows and state.definition is not None and rows not in self._names(state.definition):
            raise port.damaged_state(name, f"rows in the index {rows} of another target")
        self._name = self._name or rows
        return state

    def _names(self, definition: SkippingDefinition) -> tuple[str, ...]:
        """Names that the index of rows may have: in either form, or as it was given."""
        target = definition.target
        tables = [index_name(target.table, form) for form in FlintForm] if target.table else []
        return (*tables, path_index_name(target.uri), self._name)

    def _refuse_others_index(self) -> None:
        """Refuse an index of rows without a document of ours, whatever its state."""
        if not self._client.exists(self._name):
            return
        if OWN not in self._client.mapping(self._name).get("properties", {}):
            raise self._made_by_others()

    def _made_by_others(self) -> errors.IndexAlreadyExists:
        return errors.IndexAlreadyExists(
            f"the index {self._name} of OpenSearch was made by somebody else",
            found="documents without the field " + OWN,
            expected="an index of Snaploom, or none",
        )

    def _prepare(self, definition: SkippingDefinition) -> tuple[documents.ShownIndex, ...]:
        """Create both indexes, or add fields; returns those indexes that Flint's form shows.

        A field that has another type already (of an index that was dropped) cannot be shown.
        """
        if definition.footer_key_label or any(one.key_label for one in definition.indexes):
            raise errors.IndexNotPossible(
                "an index in OpenSearch cannot be encrypted by Snaploom",
                hint="encrypt the disks of OpenSearch, or keep the index in a Parquet store",
            )
        self._find_name(definition)
        self._client.create_index(OWN_INDEX, _OWN_MAPPING)
        fields: Json = {FILE_PATH: {"type": "keyword"}, OWN: documents.ROW_MAPPING}
        shown = documents.shown_indexes(definition)
        for one in shown:
            fields.update(documents.mapping_of(one))
        if self._client.create_index(self._name, {"dynamic": "false", "properties": fields}):
            return shown
        there = self._client.mapping(self._name).get("properties", {})
        if OWN not in there:
            raise self._made_by_others()
        fitting = tuple(
            one
            for one in shown
            if all(
                found is None or found.get("type") == field["type"]
                for name, field in documents.mapping_of(one).items()
                for found in [field_at(there, name)]
            )
        )
        missing = {
            name: field
            for one in fitting
            for name, field in documents.mapping_of(one).items()
            if field_at(there, name) is None
        }
        if missing:
            self._client.put_mapping(self._name, {"properties": missing})
        return fitting

    def _parts(
        self, segments: Sequence[port.Segment], definition: SkippingDefinition
    ) -> list[folder.Part]:
        return [folder.Part(segment, self._reader(segment, definition)) for segment in segments]

    def _reader(
        self, segment: port.Segment, definition: SkippingDefinition
    ) -> folder.SegmentReader:
        if segment.removed:
            return segments.RemovedReader(segment, self._removed(segment))
        index = OWN_INDEX if segment.name.startswith(segments.PARTIAL) else self._name
        return segments.DocumentReader(self._client, index, segment, definition)

    def _removed(self, segment: port.Segment) -> list[str]:
        paths: list[str] = []
        for start in range(0, segment.rows, segments.PATHS_IN_DOCUMENT):
            found = self._client.get(OWN_INDEX, segments.removed_document(segment.name, start))
            document = {} if found is None else found.source.get("document")
            piece = document.get("paths") if isinstance(document, dict) else None
            if not isinstance(piece, list) or len(piece) > segments.PATHS_IN_DOCUMENT:
                break  # fewer paths than the segment has: readers refuse it
            paths += piece
        return paths

    def _show(self, before: port.StoredState, after: port.StoredState) -> None:
        """Update the fields for readers of Flint; a failure affects only them."""
        if after.definition is None or _shown_part(before) == _shown_part(after):
            return
        try:
            shown = self._prepare(after.definition)
            self._fold(after, after.definition, shown)
            described = documents.metadata_of(after, shown, self._name, self._form)
            self._client.put_mapping(self._name, {"_meta": render_metadata(described)})
        except errors.SkippingError as error:
            _log.warning("readers of Flint see an older state of %s: %s", self.uri, error.message)

    def _fold(
        self,
        state: port.StoredState,
        definition: SkippingDefinition,
        shown: tuple[documents.ShownIndex, ...],
    ) -> None:
        if not any(segment.merges for segment in state.segments):
            return
        files = self.open(state)
        names = [name for name, _ in IDENTITY_FIELDS]
        names += documents.kept_columns([one.index for one in shown])
        rows = pa.table({name: files.column(name) for name in names})
        fields = {row["path"]: documents.flint_fields(row, shown) for row in rows.to_pylist()}
        hits = self._listed(self._name, {"exists": {"field": FILE_PATH}})
        folded = (
            segments.Write(segments.Action.UPDATE, fields[path], hit.document_id)
            for hit in hits
            if fields.get(path := str(hit.source[OWN].get("path")))
        )
        segments.write_documents(self._client, self._name, folded)

    def _give_ids_back(self, needed: set[str]) -> None:
        """Give Flint's id to rows under random ids where it is free now."""
        self._client.refresh(self._name)
        query = {"term": {f"{OWN}.is_spare": True}}
        spare = [
            hit
            for hit in documents.read_hits(self._client, self._name, query)
            if _is_ours(hit) and hit.source[OWN]["segment"] in needed
        ]
        wanted = {document_id(file_uri(str(hit.source[OWN].get("path")))): hit for hit in spare}
        for hit in spare:
            hit.source[OWN].pop("is_spare", None)
        creates = (
            segments.Write(segments.Action.CREATE, hit.source, name) for name, hit in wanted.items()
        )
        taken = {
            write.document_id
            for write in segments.write_all(self._client, self._name, creates, RefreshPolicy.NONE)
        }
        done = [hit for name, hit in wanted.items() if name not in taken]
        # Both are visible before one of them goes: no reader sees neither.
        self._client.refresh(self._name)
        segments.write_documents(
            self._client,
            self._name,
            (segments.Write(segments.Action.DELETE, document_id=h.document_id) for h in done),
        )

    def _listed(self, index: str, query: Json) -> list[documents.Hit]:
        if not index or not self._client.exists(index):
            return []
        self._client.refresh(index)
        fields = [f"{OWN}.segment", f"{OWN}.path"]
        return [
            hit for hit in documents.read_hits(self._client, index, query, fields) if _is_ours(hit)
        ]


def _is_ours(hit: documents.Hit) -> bool:
    own = hit.source.get(OWN)
    return isinstance(own, dict) and isinstance(own.get("segment"), str)


def _shown_part(state: port.StoredState) -> tuple[object, ...]:
    merging = tuple(segment.name for segment in state.segments if segment.merges)
    return state.definition, state.phase, merging


# OpenSearch as a base of skipping indexes: `opensearch://host:9200?scheme=https&auth=basic`.

USERNAME, PASSWORD = "SNAPLOOM_OPENSEARCH_USERNAME", "SNAPLOOM_OPENSEARCH_PASSWORD"
"""Environment variables for auth basic."""

_PAGE = "1000"


class OpenSearchBase:
    """A cluster that holds skipping indexes; behind the port `IndexBase`."""

    def __init__(self, options: OpenSearchOptions, form: FlintForm = FlintForm.TODAY) -> None:
        self._client = OpenSearchClient(options)
        self._form = form

    @property
    def uri(self) -> str:
        return self._client.options.uri

    def index(self, target_uri: str) -> OpenSearchIndexStore:
        """The store of a target's index; its state is found by the hash of the target's URI."""
        return self._store(hashlib.sha256(target_uri.encode()).hexdigest())

    def indexes(self) -> list[port.IndexStore]:
        if not self._client.exists(OWN_INDEX):
            return []
        self._client.refresh(OWN_INDEX)
        query = {"bool": {"must_not": [{"exists": {"field": f"{OWN}.segment"}}]}}
        hits = documents.read_hits(self._client, OWN_INDEX, query, ["index"])
        return [self._store(name) for name in sorted(hit.document_id for hit in hits)]

    def _store(self, key: str) -> OpenSearchIndexStore:
        return OpenSearchIndexStore(self._client, form=self._form, key=key)


def open_opensearch_base(uri: str, keys: ParquetKeys | None) -> OpenSearchBase:
    """Open the base at a URI, else `StatementInvalid`; `keys` are unused: nothing is encrypted."""
    parts = urlsplit(uri)
    if not parts.hostname or parts.username is not None or parts.path.strip("/"):
        raise errors.StatementInvalid(
            "this is no place in OpenSearch",
            found="no host, a user, or a path",
            expected="opensearch://host:port?option=value, without a user or a path",
            hint=f"correct it; for auth basic set {USERNAME} and {PASSWORD}",
        )
    options = {"read.scroll_size": _PAGE, "host": parts.hostname, **dict(parse_qsl(parts.query))}
    username_variable = options.pop(folder.USERNAME_VARIABLE, USERNAME)
    password_variable = options.pop(folder.PASSWORD_VARIABLE, PASSWORD)
    form = options.pop("form", FlintForm.TODAY.value).upper()
    if form not in set(FlintForm):
        raise errors.StatementInvalid(
            "form has no such value", found=form, expected="TODAY or SEED"
        )
    if parts.port is not None:
        options["port"] = str(parts.port)
    if options.get("auth", "").lower() == "basic":
        options["username"] = _variable(username_variable)
        options["password"] = _variable(password_variable)
        remember_secret(options["password"], options["username"])
    return OpenSearchBase(parse_options(options), FlintForm(form))


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise errors.StatementInvalid(
            "auth basic needs a user, and an environment variable for it is not set",
            expected=name,
            hint="set it where queries and jobs run",
        )
    return value
