"""Documents of a hostile folder: names, bounds, classes by name, and what reaches a terminal."""

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from rich.table import Table
from support.hostile.foldermutations import ESCAPES, Outside, foreign_names, foreign_type, sealed
from support.hostile.folderoperations import SCHEMA, command, parquet
from support.hostile.thriftedit import edited, long_paths
from support.storage.folders import a_folder, a_run, bury, day, published
from support.storage.tablefolders import published_in_table, table_folder

from snaploom import reader
from snaploom.cli import console
from snaploom.confidential import json_visible, visible
from snaploom.errors import (
    FormatTooNew,
    ManifestCorrupt,
    ObjectTooLarge,
    SnaploomError,
    SourceSchemaInvalid,
    StorageError,
)
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.output import layout
from snaploom.output.caches import SubtreeStore
from snaploom.output.checkpoints import RECORDS_KEPT, format_checkpoint, parse_checkpoint
from snaploom.output.documents import ENTRY, HINT, Bounds, parse_json
from snaploom.output.entries import Replace, SnapshotRecord, format_entry, parse_entry
from snaploom.output.folder import Folder, open_folder
from snaploom.output.icebergtable import IcebergTable, TableVersion, is_below, version_key
from snaploom.output.layout import Hash, PartitionName, PublishedPath, RelativePath, RunId
from snaploom.output.manifest import read_schema, store_schema
from snaploom.output.state import EMPTY, ENDED_TOGETHER, Records, first_ended, tombstone_of
from snaploom.output.tablehistory import Meant, meaning_of
from snaploom.parquet.footers import LONGEST, read_footer
from snaploom.spark.types import struct_from

OUTSIDE = Outside(Path("/canaries"), "127.0.0.1:1")
KINDS = {
    "RelativePath": TypeAdapter[str](RelativePath),
    "PublishedPath": TypeAdapter[str](PublishedPath),
    "PartitionName": TypeAdapter[str](PartitionName),
    "RunId": TypeAdapter[str](RunId),
    "Hash": TypeAdapter[str](Hash),
}
RUN = a_run().run_id


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "out"), create=True)


@pytest.fixture
def folder(store: ObjectStore) -> Folder:
    made = a_folder(store)
    published(made)
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", foreign_names(OUTSIDE), ids=lambda name: ascii(name)[:40])
def test_name_that_leads_elsewhere_is_refused_where_it_is_parsed(kind: str, name: str) -> None:
    if kind == "RelativePath" and name in ("snaploom.json", layout.manifest_key(1)):
        return  # relative, and of no other harm where any file of a folder may be named
    with pytest.raises(ValidationError):
        KINDS[kind].validate_python(name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("PublishedPath", f"data/t=2020-01-01T00%3A00%3A00+01%3A00/{RUN}-0123abcd-00000.json.gz"),
        ("PublishedPath", f"data/day=-1000/{RUN}-0123abcd-123456"),
        ("PartitionName", "snapshot_epoch=1577836800000"),
        ("RelativePath", f"{'a' * 64}/{RUN}-0123abcd/part-00000-x.c000.snappy.parquet"),
    ],
    ids=["instant", "number", "partition", "subtree"],  # names of runs differ each time
)
def test_name_as_snaploom_gives_it_is_taken(kind: str, name: str) -> None:
    assert KINDS[kind].validate_python(name) == name


def of(folder: Folder, change: Callable[[dict[str, object]], object]) -> bytes:
    """The entry that published, changed."""
    entry = json.loads(format_entry_of(folder))
    change(entry)
    return json.dumps(entry).encode()


def format_entry_of(folder: Folder) -> bytes:
    return folder.store.get(layout.manifest_key(2))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("file of another partition", lambda e: e["snapshot"].update(partition="day=7")),
        ("number of 65 bits", lambda e: e.update(seq=2**64)),
        ("number of a thousand digits", lambda e: e["snapshot"].update(rows=10**1000)),
        ("model that goes round", lambda e: e["model"][1].update(parent="address")),
        ("model that hangs nowhere", lambda e: e["model"][1].update(parent="x")),
        ("time of a source that is none", lambda e: e["snapshot"].update(
            sources=[{"fieldName": "", "source": "c", "time": "2020-99-99T00:00:00Z"}])),
        ("key of its own", lambda e: e.update(extra=1)),
    ],
)  # fmt: skip
def test_entry_with_what_cannot_be_is_refused(folder, name, change):
    parse_entry(format_entry_of(folder), "x")
    with pytest.raises(ManifestCorrupt):
        parse_entry(of(folder, change), "x")


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (b'{"format": 1, "format": 1}', "twice"),
        (b"[" * 100_000, "too deep"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not JSON"),
        (b'"' + b"x" * 101 + b'"', "103 bytes"),
        (b"[" + b"[]," * 30 + b"[]]", "up to"),
        (b"\xff", "not JSON"),
    ],
)
def test_json_beyond_its_bounds_is_refused(document: bytes, found: str) -> None:
    length = 200_000 if len(document) > 5000 else 100
    with pytest.raises(ManifestCorrupt) as caught:
        parse_json(document, "x", Bounds(length, 60 if length == 100 else 200_000))
    assert found in str(caught.value)


def test_marker_of_a_newer_format_is_an_error_with_the_known_format(store: ObjectStore) -> None:
    store.put(layout.MARKER, b'{"format": 2}')
    with pytest.raises(FormatTooNew, match="newer"):
        open_folder(store)


@pytest.mark.parametrize("key", [layout.MARKER, layout.manifest_key(1), layout.LATEST])
def test_document_of_a_terabyte_is_not_read(folder: Folder, tmp_path: Path, key: str) -> None:
    with (tmp_path / "out" / key).open("r+b") as file:
        file.truncate(1 << 40)
    if key == layout.LATEST:  # a hint, which nothing depends on
        assert open_folder(folder.store).log.read().seq == 2
        return
    with pytest.raises(ObjectTooLarge, match="was not read"):
        open_folder(folder.store).log.read()


def changed_checkpoint(folder: Folder, change: Callable[[dict[str, object]], object]) -> bytes:
    """A checkpoint with another index under a digest that is right."""
    content = format_checkpoint(folder.read()).partition(b"\n")[2]
    index, _, rest = content.partition(b"\n")
    raw = json.loads(index)
    change(raw)
    return sealed(json.dumps(raw).encode() + b"\n" + rest)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("columns of other lengths", lambda i: i["live"].update(seq=[])),
        ("hash that is not there", lambda i: i["live"].update(schemaHash=[9])),
        ("negative place of a hash", lambda i: i["live"].update(schemaHash=[-1])),
        ("hash that leads elsewhere", lambda i: i.update(hashes=["../x", "y"])),
        ("partition that leads elsewhere", lambda i: i["live"].update(partition=["../x"])),
        ("time beyond all years", lambda i: i["live"].update(time=[2**70])),
        ("no data model", lambda i: i.update(models=[])),
        ("records that are not there", lambda i: i.update(records=[2, 3])),
        ("entry after which none can be", lambda i: i.update(seq=2**63 - 1)),
    ],
)
def test_checkpoint_with_what_cannot_be_is_not_used(folder, name, change):
    parse_checkpoint(changed_checkpoint(folder, lambda index: None), 2, Records())
    with pytest.raises((ValueError, ManifestCorrupt)):
        parse_checkpoint(changed_checkpoint(folder, change), 2, Records())


def test_record_of_a_checkpoint_must_be_of_the_version(folder: Folder) -> None:
    def forge(index: dict[str, dict[str, object]]) -> None:
        index["live"]["createdAt"] = [0]

    document = changed_checkpoint(folder, forge)  # type: ignore[arg-type]
    state = parse_checkpoint(document, 2, Records())
    with pytest.raises(ManifestCorrupt, match="damaged"):
        list(state.snapshots)


def test_record_of_a_checkpoint_that_is_damaged_is_an_error_of_ours(folder: Folder) -> None:
    content = format_checkpoint(folder.read()).partition(b"\n")[2]
    document = sealed(content.replace(b'"rows":20', b'"rows":-1'))
    with pytest.raises(ManifestCorrupt, match="damaged"):
        list(parse_checkpoint(document, 2, Records()).snapshots)


def test_more_lines_than_a_checkpoint_has_records_are_not_split(folder: Folder) -> None:
    content = format_checkpoint(folder.read()).partition(b"\n")[2]
    document = sealed(content + b"\n" * (RECORDS_KEPT * 2))
    with pytest.raises(ValueError, match="zip"):
        parse_checkpoint(document, 2, Records())


def test_deletion_of_many_files_takes_several_entries(folder: Folder) -> None:
    record = folder.read().live[day(0)]
    many = record.model_copy(update={"files": record.files * (ENDED_TOGETHER // 4)})
    ended = tombstone_of(many, seq=3, rule="x", deleted_at=record.time)
    assert len(first_ended([ended] * 5)) == 1
    assert (
        len(first_ended([tombstone_of(record, seq=3, rule="x", deleted_at=record.time)] * 5)) == 5
    )


def test_longest_deletion_of_one_entry_can_be_read_again(folder: Folder) -> None:
    bury(folder, 0)
    entry = parse_entry(folder.store.get(layout.manifest_key(3)), "x")
    one = entry.snapshots[0]  # type: ignore[union-attr]
    file = one.files[0].model_copy(update={"bytes": 2**40})
    ended = one.model_copy(update={"files": (file,) * ENDED_TOGETHER})
    document = format_entry(entry.model_copy(update={"snapshots": (ended,)}))
    assert len(document) < ENTRY.length / 2
    assert parse_entry(document, "x")


def test_class_in_a_schema_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    hostile = foreign_type(Outside(tmp_path, ""))
    with pytest.raises(SourceSchemaInvalid, match="not a schema"):
        struct_from(hostile)
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    "smuggled", ['{"type": "udt"}', "long\nint", "decimal(99999,0)", "x" * 101]
)
def test_type_that_is_no_name_is_refused(smuggled: str) -> None:
    field = {"name": "a", "type": smuggled, "nullable": True, "metadata": {}}
    with pytest.raises(SourceSchemaInvalid):
        struct_from(json.dumps({"type": "struct", "fields": [field]}))


@pytest.mark.parametrize(
    ("type_name", "metadata"),
    [
        ("foo", {}), ("geometry(SRID:4326)", {}), ("long", {"__COLLATIONS": {"a": "icu.UNICODE"}}),
        ("varchar(x)", {}),
        ("interval foo to bar", {}), ("string", {"__COLLATIONS": 5}),
        ("string", {"__COLLATIONS": {"a": "icu.X.Y.Z"}}),
        ("string", {"\ud800": 1}),
    ],
)  # fmt: skip
def test_type_that_pyspark_refuses_is_one_error_of_ours(type_name, metadata):
    field = {"name": "a", "type": type_name, "nullable": True, "metadata": metadata}
    with pytest.raises(SourceSchemaInvalid, match="not a schema"):
        struct_from(json.dumps({"type": "struct", "fields": [field]}))


def test_half_of_a_surrogate_pair_is_no_name_and_a_pair_is(folder: Folder) -> None:
    half, pair = (SCHEMA.replace('"a"', f'"a{suffix}"') for suffix in ("\\ud83d", "\\ud83d\\ude00"))
    key = store_schema(folder.store, half)
    with pytest.raises(ManifestCorrupt, match="damaged"):
        read_schema(folder.store, key)
    assert read_schema(folder.store, store_schema(folder.store, pair)) == pair


def test_schema_of_any_depth_is_read_or_refused() -> None:
    kind = '"long"'
    for depth in range(400):
        field = f'{{"name":"a","type":{kind},"nullable":true,"metadata":{{}}}}'
        kind = f'{{"type":"struct","fields":[{field}]}}'
        if depth % 20 == 0:
            with suppress(SourceSchemaInvalid):
                struct_from(kind)


def test_types_of_spark_itself_are_read() -> None:
    udt = {
        "type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT",
        "pyClass": "pyspark.ml.linalg.VectorUDT", "sqlType": "long",
    }  # fmt: skip
    fields = [
        {"name": f"f{number}", "type": kind, "nullable": True, "metadata": {}}
        for number, kind in enumerate(
            ("long", "decimal(38,-5)", "interval day to second", "timestamp_ntz", "variant", udt)
        )
    ]
    assert len(struct_from(json.dumps({"type": "struct", "fields": fields})).fields) == 6


def test_schema_under_a_wrong_hash_is_refused(folder: Folder) -> None:
    key = layout.schema_key(folder.read().snapshots[0].schema_hash)
    folder.store.put(key, SCHEMA.encode())
    command("check", folder.store.uri, "--files-only")
    with pytest.raises(ManifestCorrupt, match="damaged"):
        reader.schema(folder.store.uri)


@pytest.mark.parametrize("length", [0, LONGEST + 1, 2**32 - 1])
def test_footer_that_lies_about_its_length_is_not_read(store: ObjectStore, length: int) -> None:
    store.put("x", parquet()[:-8] + length.to_bytes(4, "little") + b"PAR1")
    info = store.head("x")
    assert info is not None
    assert read_footer(store, info) is None


def test_footer_whose_paths_take_far_more_than_it_has_is_not_parsed(store: ObjectStore) -> None:
    store.put("data/a.parquet", edited(parquet(), long_paths))
    info = store.head("data/a.parquet")
    assert info.size < 2 * 2**20
    assert read_footer(store, info) is None


def test_footer_has_rows_and_schema(store: ObjectStore) -> None:
    store.put("x", parquet(rows=5))
    info = store.head("x")
    assert info is not None
    footer = read_footer(store, info)
    assert (footer.rows, footer.schema) == (5, SCHEMA)


def table_version(
    store: ObjectStore, change: Callable[[dict[str, object]], object]
) -> IcebergTable:
    """A folder's table whose newest version is changed."""
    folder = table_folder(store)
    published_in_table(folder, 0)
    newest = IcebergTable(store).read()
    document = json.loads(json.dumps(newest.document))
    change(document)
    store.put(version_key(newest.number), json.dumps(document).encode())
    return IcebergTable(store)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("list of files elsewhere", lambda d: d["snapshots"][-1].update(
            {"manifest-list": "http://127.0.0.1:1/x"})),
        ("list of files above", lambda d: d["snapshots"][-1].update(
            {"manifest-list": "iceberg/metadata/../../../x"})),
        ("place elsewhere", lambda d: d.update(location="s3a://bucket/x")),
        ("class by its name", lambda d: d.setdefault("properties", {}).update(
            {"write.location-provider.impl": "evil.Class"})),
        ("place of its data", lambda d: d.setdefault("properties", {}).update(
            {"write.metadata.path": "http://127.0.0.1:1/"})),
    ],
)  # fmt: skip
def test_table_that_leads_elsewhere_is_refused(store, name, change):
    with pytest.raises(ManifestCorrupt):
        table_version(store, change).read()


def test_table_whose_parents_go_round_ends() -> None:
    snapshots = [
        {"snapshot-id": 1, "parent-snapshot-id": 2},
        {"snapshot-id": 2, "parent-snapshot-id": 1},
    ]
    version = TableVersion(1, {"current-snapshot-id": 1, "snapshots": snapshots})  # type: ignore[dict-item]
    assert len(list(version.lineage())) == 2


@pytest.mark.parametrize(
    ("place", "is_inside"),
    [
        ("file:/out/iceberg/a", True), ("file:///out/iceberg/a", True), ("/out/iceberg/a", True),
        ("file://out/iceberg/a", False), ("//out/iceberg/a", False), ("file:out/iceberg/a", False),
        ("/out/iceberg/../a", False), ("s3a://out/iceberg/a", False),
    ],
)  # fmt: skip
def test_place_with_a_host_is_not_in_a_local_folder(place: str, is_inside: bool) -> None:
    assert is_below(place, "file:///out/iceberg/") == is_inside


def test_commit_that_replaces_what_is_not_live_is_damaged(folder: Folder) -> None:
    published(folder)
    state = folder.read()
    record = state.snapshots[0]
    replaced = tombstone_of(record, seq=2, rule="REPLACED", deleted_at=record.created_at)
    entry = Replace(
        seq=record.seq,
        run_id=record.run_id,
        written_at=record.created_at,
        tool_version="0.0.0",
        snapshot=record,
        replaced=replaced,
    )
    with pytest.raises(ManifestCorrupt, match="not live"):
        Meant(entry, "").on_top_of(EMPTY)


def test_files_of_a_partition_are_gone_through_once(folder, monkeypatch):
    published(folder, 5, files=50)
    state = folder.read()
    record = state.live[day(5)]
    looks: list[object] = []

    def look(_: Records, version: object) -> SnapshotRecord:
        looks.append(version)
        return record

    monkeypatch.setattr(Records, "live", look)
    assert all(state.is_live(file.path) for file in record.files)
    assert not state.is_live(f"{record.files[0].path}x")
    assert len(looks) == 1


def test_commit_of_a_table_without_the_hash_of_its_name_is_damaged(store: ObjectStore) -> None:
    name = "a" * 64
    store.put(layout.commit_key(name), b'{"format": 1}')
    with pytest.raises(ManifestCorrupt, match="damaged"):
        meaning_of(store, name)
    with pytest.raises(ManifestCorrupt, match="damaged"):
        meaning_of(store, "../../metadata/x")


def test_error_shows_escape_sequences_and_line_feeds_of_names() -> None:
    text = str(StorageError(f"reading {visible(ESCAPES)} failed", found=ESCAPES))
    assert "\x1b" not in text
    assert "\\x1b]0;owned" in text
    assert "\u202e" not in text
    assert "\n" not in visible(ESCAPES)


def test_console_prints_no_escape_sequence_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    table = Table("name")
    table.add_row(f"[link=http://x]y[/link]{ESCAPES}")
    console.result_console().print(table)
    console.result_console().print(ESCAPES, "[/no markup]")
    console.print_json({"name": ESCAPES + "\udcff"})
    printed = stream.getvalue()
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\udcff"} & set(printed)
    assert "[link=http://x]" in printed
    assert "[/no markup]" in printed


def test_escaped_json_is_the_same_document() -> None:
    text = json.dumps({"a": ESCAPES, "b": "ä"}, ensure_ascii=False, indent=2)
    assert json.loads(json_visible(text)) == {"a": ESCAPES, "b": "ä"}
    assert "ä" in json_visible(text)


def test_hint_is_read_within_its_bounds(folder: Folder) -> None:
    for hostile in (
        b'{"seq": 1e999, "checkpoint": 0}',
        b"[]",
        b"[" * 4000,
        b'{"seq": -1}',
        b"x" * 9999,
    ):
        folder.store.put(layout.LATEST, hostile)
        assert open_folder(folder.store).log.read().seq == 2
    assert HINT.length < 9999


def test_hint_of_what_is_not_there_is_one_clear_error(folder: Folder) -> None:
    folder.store.put(layout.LATEST, json.dumps({"seq": 2**62, "checkpoint": 2**62}).encode())
    with pytest.raises(SnaploomError, match="damaged"):
        open_folder(folder.store).log.read()


def subtree(**changes: object) -> dict[str, object]:
    name = "a" * 64
    file = {"path": f"{name}/{RUN}-0123abcd/part-0.parquet", "bytes": 4}
    return {
        "format": 1, "signature": name, "toolVersion": "1", "sparkVersion": "4",
        "columns": SCHEMA, "counts": [], "files": [file], **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        *({"files": [{"path": name, "bytes": 4}]} for name in foreign_names(OUTSIDE)),
        {"files": [{"path": f"{'b' * 64}/x", "bytes": 4}]},
        {"counts": [{"number": -1, "isOut": True, "counts": {}}]},
        {"columns": "x" * 20_000_000},
        {"signature": "../x"},
        {"class": "x"},
    ],
    ids=lambda changes: ascii(changes)[:40],
)
def test_subtree_with_what_cannot_be_is_not_used(store, changes):
    name = "a" * 64
    store.put(f"{name}/{RUN}-0123abcd/part-0.parquet", b"PAR1")
    store.put(f"{name}.json", json.dumps(subtree()).encode())
    assert SubtreeStore(store, ("1", "4")).find(name) is not None
    store.put(f"{name}.json", json.dumps(subtree(**changes)).encode())
    assert SubtreeStore(store, ("1", "4")).find(name) is None
