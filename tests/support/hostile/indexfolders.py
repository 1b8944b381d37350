"""Folders of skipping indexes: good ones, and what an enemy derives from them.

A mutation is a name and a function that changes a folder in place. Those of bytes and of JSON are
drawn from a seed; those that are known to be dangerous are written out.
"""

import io
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.hostile.thriftedit import STREAMS
from support.skipping.faketarget import URI, FakeTarget
from support.skipping.xskipperfiles import (
    array_of,
    bloom_of_longs,
    field,
    index_metadata,
    java_bloom,
    java_bounds,
    java_int,
    java_set,
    java_string,
    java_type,
    struct_of,
    write_part,
)

from snaploom.files.local import LocalObjectStore
from snaploom.models.skippingindex import Index, IndexState
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.operations import create, refresh
from snaploom.skipping.stores.catalog import FolderBase
from snaploom.skipping.stores.port import target_key
from snaploom.skipping.stores.usage import Usage

NEIGHBOUR_URI = "file:/data/neighbour"
CANARY = b"canary 5f1c: nobody reads this, and nobody removes it\n"

INDEXES = (
    Index(type="MIN_MAX", column="a"),
    Index(type="VALUE_SET", column="a"),
    Index(type="BLOOM_FILTER", column="a", parameters={"items": "VALUES"}),
)


def _length(path: Path) -> int:
    return path.lstat().st_size


@dataclass(frozen=True)
class Place:
    """A folder with indexes, and files beside it."""

    root: Path

    @property
    def base(self) -> Path:
        return self.root / "base"

    @property
    def index(self) -> Path:
        """The index that an enemy writes to."""
        return self.base / target_key(URI)

    @property
    def metadata(self) -> Path:
        return self.root / "metadata"

    @property
    def canaries(self) -> Path:
        """Files that no command may read."""
        return self.root / "canaries"

    @property
    def state(self) -> Path:
        return max((self.index / "manifest").glob("*.json"))

    @property
    def segment(self) -> Path:
        """The longest segment, which has rows about files."""
        return max((self.index / "segments").glob("*.parquet"), key=_length)


def a_target(uri: str = URI) -> FakeTarget:
    target = FakeTarget(columns={"a": "bigint"}, uri=uri)
    for name in range(6):
        target.put(f"f{name}", *range(10 * name, 10 * name + 10))
    return target


def make_good(root: Path) -> Place:
    """Two indexes below one base, one of each form, and a metadata store of versions 0 and 4."""
    place = Place(root)
    place.canaries.mkdir(parents=True)
    (place.canaries / "secret.json").write_bytes(CANARY)
    (place.canaries / "segments").mkdir()
    (place.canaries / "segments" / "kept.parquet").write_bytes(CANARY)
    base = FolderBase(LocalObjectStore(place.base, create=True))
    for uri in (URI, NEIGHBOUR_URI):
        target = a_target(uri)
        store = base.index(uri)
        form = "XSKIPPER" if uri == NEIGHBOUR_URI else "NATIVE"
        declared = INDEXES[:2] if form == "XSKIPPER" else INDEXES
        create(store, target, Declaration(declared, form=form))
        refresh(store, target)
        target.put("f7", 1, 2, 3)
        del target.files["f0"]
        refresh(store, target)
        store.usage.write("5e55", Usage(reads=3, served=1, files=9, why_not={"it is old": 2}))
    _write_metadata(place.metadata)
    return place


def _write_metadata(folder: Path) -> None:
    names = pa.array([f"{URI.removeprefix('file:')}/f{number}#1000" for number in range(3)])
    bounds = pa.struct([("min", pa.int64()), ("max", pa.int64())])
    identifier = URI.removeprefix("file:")
    bloom = java_bloom(bloom_of_longs([1, 2]))
    write_part(
        folder, "part-4.parquet",
        [
            field("obj_name", "string", {"version": 4, "tableIdentifier": identifier}),
            field("a_minmax_1", struct_of("long"), index_metadata("minmax", ["a"])),
            field("a_valuelist_1", array_of("long"), index_metadata("valuelist", ["a"])),
            field("a_bloomfilter_1", java_type("B"), index_metadata("bloomfilter", ["a"])),
        ],
        {
            "obj_name": names,
            "a_minmax_1": pa.array([{"min": 0, "max": 9}, None, {"min": 20, "max": 29}], bounds),
            "a_valuelist_1": pa.array([[1], None, [2, 3]], pa.list_(pa.int64())),
            "a_bloomfilter_1": pa.array([bloom, None, bloom], pa.binary()),
        },
    )  # fmt: skip
    write_java(folder, "part-0.parquet", java_bounds(java_int(-5), java_int(7)),
               java_set([java_string("x")]), bloom)  # fmt: skip


def write_java(folder: Path, name: str, bounds: bytes, values: bytes, bloom: bytes) -> None:
    """A part of version 0, whose columns hold Java's objects."""
    more = {"tableIdentifier": URI.removeprefix("file:").removeprefix("/")}
    write_part(
        folder, name,
        [
            field("obj_name", "string", {"version": 0}),
            field("a_minmax", java_type("M"), index_metadata("minmax", ["a"], **more)),
            field("b_valuelist", java_type("V"), index_metadata("valuelist", ["b"], **more)),
            field("c_bloomfilter", java_type("B"), index_metadata("bloomfilter", ["c"], **more)),
        ],
        {
            "obj_name": pa.array([f"{URI.removeprefix('file:')}/f4#1000"]),
            "a_minmax": pa.array([bounds], pa.binary()),
            "b_valuelist": pa.array([values], pa.binary()),
            "c_bloomfilter": pa.array([bloom], pa.binary()),
        },
    )  # fmt: skip


Change = Callable[[Place], None]


@dataclass(frozen=True)
class Mutation:
    """One thing that an enemy does."""

    name: str
    change: Change


def mutations(seed: int, of_bytes: int, of_json: int) -> list[Mutation]:
    """Every mutation that is written out, and some of each other kind."""
    chance = random.Random(seed)
    drawn = [_of_bytes(chance, number) for number in range(of_bytes)]
    drawn += [_of_json(chance, number) for number in range(of_json)]
    return [*_written_out(), *drawn]


# Bytes of any file.


def _files(place: Place) -> list[Path]:
    found = [path for path in place.index.rglob("*") if path.is_file()]
    return sorted([*found, *place.metadata.iterdir()])


def _of_bytes(chance: random.Random, number: int) -> Mutation:
    kind = chance.choice(sorted(_BYTES))
    which, seed = chance.random(), chance.random()

    def change(place: Place) -> None:
        files = _files(place)
        path = files[int(which * len(files))]
        path.write_bytes(_BYTES[kind](random.Random(seed), path.read_bytes()))

    return Mutation(f"{kind}-{number}", change)


def _flipped(chance: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        # Footers have the most meaning; half of all flips go there.
        at = chance.randrange(len(found)) if chance.random() < 0.5 else -chance.randrange(1, 1200)
        found[at % len(found)] ^= 1 << chance.randrange(8)
    return bytes(found)


def _overwritten(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    value = chance.choice([b"\xff" * 8, b"\0" * 8, b"\x7f\xff\xff\xff", b"\x80" * 4])
    return data[:at] + value + data[at + len(value) :]


_BYTES: Mapping[str, Callable[[random.Random, bytes], bytes]] = {
    "flip": _flipped,
    "cut": lambda chance, data: data[: chance.randrange(len(data))],
    "cut-front": lambda chance, data: data[chance.randrange(len(data)) :],
    "noise": lambda chance, data: chance.randbytes(len(data)),
    "overwrite": _overwritten,
    "twice": lambda chance, data: data + data,
    "insert": lambda chance, data: data[: len(data) // 2] + chance.randbytes(9)
    + data[len(data) // 2 :],
}  # fmt: skip


# Values of a state.

VALUES: tuple[object, ...] = (
    None, True, -1, 0, 10**30, -(10**30), 1.5, "", "x" * 100_000, [], {}, [[]], {"a": 1},
    "../../canaries/segments/kept.parquet", "/etc/passwd", "segments/../../../canaries/secret.json",
    "http://127.0.0.1:9/", "file:///etc/passwd", "jdbc", "os:system", "snaploom.errors:IndexBusy",
    "reflect('java.lang.Runtime', 'getRuntime')", "\x1b]0;x\x07", "\ud83d", "decimal(999,999)",
    "decimal(38,-38)", "MIN_MAX", "GEO_BOX", "i1", "i1.values", "nan", "99999999999999999999",
)  # fmt: skip


def _of_json(chance: random.Random, number: int) -> Mutation:
    which, value = chance.random(), chance.choice(VALUES)

    def change(place: Place) -> None:
        document = json.loads(place.state.read_bytes())
        paths = list(_paths(document, ()))
        _put(document, paths[int(which * len(paths))], value)
        place.state.write_text(json.dumps(document))

    return Mutation(f"json-{number}", change)


def _paths(value: object, path: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    members = enumerate(value) if isinstance(value, list) else ()
    for key, inner in [*items, *members]:
        yield from _paths(inner, (*path, key))


def _put(document: object, path: tuple[object, ...], value: object) -> None:
    at = document
    for key in path[:-1]:
        at = at[key]  # type: ignore[index]
    at[path[-1]] = value  # type: ignore[index]


# What is known to be dangerous.


def in_state(change: Callable[[dict[str, object]], None]) -> Change:
    """Change the document of the newest state."""

    def apply(place: Place) -> None:
        document = json.loads(place.state.read_bytes())
        change(document["state"])
        place.state.write_text(json.dumps(document))

    return apply


def _written_out() -> list[Mutation]:
    found: dict[str, Change] = {**_LINKS, **_STATES, **_PARQUETS}
    for name, stream in STREAMS.items():
        found[f"java-{name}"] = _java(stream)
    return [Mutation(name, change) for name, change in found.items()]


def _java(stream: bytes) -> Change:
    return lambda place: write_java(place.metadata, "part-0.parquet", stream, stream, stream)


def _linked(path: Callable[[Place], Path], to: Callable[[Place], Path]) -> Change:
    def apply(place: Place) -> None:
        found, aim = path(place), to(place)
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()
        found.symlink_to(aim)

    return apply


def _pipe(path: Callable[[Place], Path]) -> Change:
    def apply(place: Place) -> None:
        found = path(place)
        found.unlink()
        os.mkfifo(found)

    return apply


def _folder(path: Callable[[Place], Path]) -> Change:
    def apply(place: Place) -> None:
        found = path(place)
        found.unlink()
        found.mkdir()

    return apply


def _sparse(path: Callable[[Place], Path]) -> Change:
    def apply(place: Place) -> None:
        os.truncate(path(place), 1 << 40)

    return apply


def _secret(place: Place) -> Path:
    return place.canaries / "secret.json"


_PATHS: Mapping[str, Callable[[Place], Path]] = {
    "state": lambda place: place.state,
    "hint": lambda place: place.index / "_latest",
    "segment": lambda place: place.segment,
    "usage": lambda place: place.index / "usage" / "5e55.json",
    "part": lambda place: place.metadata / "part-4.parquet",
}
_LINKS: dict[str, Change] = {
    **{f"link-{name}": _linked(path, _secret) for name, path in _PATHS.items()},
    **{f"loop-{name}": _linked(path, path) for name, path in _PATHS.items()},
    **{f"pipe-{name}": _pipe(path) for name, path in _PATHS.items()},
    **{f"folder-{name}": _folder(path) for name, path in _PATHS.items()},
    **{f"sparse-{name}": _sparse(path) for name, path in _PATHS.items()},
    **{
        f"link-{name}": _linked(lambda place, name=name: place.index / name, lambda p: p.canaries)
        for name in ("manifest", "usage")
    },
    "link-segments": _linked(
        lambda place: place.index / "segments", lambda place: place.canaries / "segments"
    ),
    "link-index": _linked(lambda place: place.index, lambda place: place.canaries),
    "link-work": lambda place: (place.base / ".snaploom-tmp").exists()
    or (place.base / ".snaploom-tmp").symlink_to(place.canaries),
}  # fmt: skip


def _segment(**changes: object) -> Change:
    def change(state: dict[str, object]) -> None:
        state["segments"][0].update(changes)  # type: ignore[index]

    return in_state(change)


def _definition(**changes: object) -> Change:
    def change(state: dict[str, object]) -> None:
        state["definition"].update(changes)  # type: ignore[attr-defined]

    return in_state(change)


def _index(**changes: object) -> Change:
    def change(state: dict[str, object]) -> None:
        state["definition"]["indexes"][0].update(changes)  # type: ignore[index]

    return in_state(change)


def _whole_state(content: bytes) -> Change:
    return lambda place: _ignore(place.state.write_bytes(content))


def _many_pruned(place: Place) -> None:
    for number in range(10, 3000):
        (place.index / "manifest" / f"{number:020d}.json").write_bytes(b'{"pruned":true}\n')


def _far_state(place: Place) -> None:
    document = json.loads(place.state.read_bytes())
    document["state"]["version"] = 10**15
    (place.index / "manifest" / f"{10**15:020d}.json").write_text(json.dumps(document))
    (place.index / "_latest").write_text('{"version":1000000000000000}')


def _ignore(_: object) -> None:
    return None


_NEIGHBOUR = {"uri": NEIGHBOUR_URI, "table": "", "format": "parquet", "options": []}
_STATES: dict[str, Change] = {
    "name-parent": _segment(name="../../../canaries/segments/kept.parquet"),
    "name-absolute": _segment(name="/etc/passwd"),
    "name-neighbour": _segment(name=f"../../{target_key(NEIGHBOUR_URI)}/_latest"),
    "name-nul": _segment(name="a\0b"),
    "name-dots": _segment(name=".."),
    "rows-many": _segment(rows=1 << 49),
    "rows-endless": _segment(rows=10**40),
    "rows-negative": _segment(rows=-1),
    "no-segments": in_state(lambda state: state.update(segments=[])),
    "many-segments": in_state(lambda state: state.update(segments=state["segments"] * 20_000)),
    "target-neighbour": _definition(target=_NEIGHBOUR),
    "form-xskipper": _definition(form="XSKIPPER"),
    "directory-of-neighbour": _definition(
        form="XSKIPPER", target={**_NEIGHBOUR, "uri": URI, "table": "/data/neighbour"}
    ),
    "dropped-neighbour": in_state(
        lambda state: state.update(
            phase=IndexState.DELETED.value,
            definition={
                **state["definition"],  # type: ignore[dict-item]
                "form": "XSKIPPER",
                "target": {**_NEIGHBOUR, "uri": URI, "table": "/data/neighbour"},
            },
        )
    ),
    "type-module": _index(type="os:system"),
    "type-dunder": _index(type="__builtins__"),
    "type-unknown": _index(type="MY_TYPE"),
    "type-other": _index(type="GEO_BOX"),
    "type-tokens": _index(type="TOKENS"),
    "parameters-huge": _index(parameters=[["limit", "9" * 5000], ["fpp", "1e-320"]]),
    "terms-none": _index(terms=[]),
    "term-deep": _index(terms=[{"key": "[" * 5000 + "]" * 5000, "dataType": "bigint"}]),
    "term-decimal": _index(terms=[{"key": '["a"]', "dataType": "decimal(999999999,1)"}]),
    "term-expression": _index(terms=[{
        "key": '[{"expression":true},["Reflect",{}]]', "dataType": "bigint",
        "label": "reflect('java.lang.Runtime', 'getRuntime')",
    }]),
    "where-sql": _definition(where="reflect('java.lang.System', 'exit', 1) = 1"),
    "escapes": _definition(owner="\x1b]0;owned\x07", properties=[["\x1b[2J", "\u202e"]]),
    "times-far": in_state(lambda state: state.update(refreshedAt=10**25, checkedAt=-5)),
    "transient": in_state(
        lambda state: state.update(phase="refreshing", operation="x", heartbeatAt=2 * 10**20)
    ),
    "deep": _whole_state(b"[" * 200_000),
    "deep-object": _whole_state(b'{"format":1,"commit":"x","state":' + b'{"a":' * 100_000),
    "long-number": _whole_state(b'{"format":' + b"9" * 1_000_000 + b"}"),
    "infinity": _whole_state(b'{"format":1e999,"commit":"x","state":{}}'),
    "wide": _whole_state(b'{"format":1,"x":[' + b"[]," * 3_000_000 + b"[]]}"),
    "not-utf-8": _whole_state(b'{"format":1,"commit":"\xff\xfe"}'),
    "many-pruned": _many_pruned,
    "far-state": _far_state,
    "hint-deep": lambda place: _ignore((place.index / "_latest").write_bytes(b"[" * 100_000)),
    "hint-infinity": lambda place: _ignore(
        (place.index / "_latest").write_bytes(b'{"version": Infinity}')
    ),
    "hint-huge": lambda place: _ignore(
        (place.index / "_latest").write_text('{"version": ' + "9" * 3000 + "}")
    ),
    "hint-negative": lambda place: _ignore(
        (place.index / "_latest").write_text('{"version": -3}')
    ),
    "usage-deep": lambda place: _ignore(
        (place.index / "usage" / "6e55.json").write_bytes(b"[" * 50_000)
    ),
    "usage-huge": lambda place: _ignore(
        (place.index / "usage" / "6e55.json").write_text(
            '{"format":1,"usage":{"reads":1' + "0" * 4000 + "}}"
        )
    ),
    "usage-far": lambda place: _ignore(
        (place.index / "usage" / "6e55.json").write_text(
            '{"format":1,"usage":{"lastUsed":1' + "0" * 30 + "}}"
        )
    ),
}  # fmt: skip


def _rewritten(change: Callable[[pa.Table], pa.Table], **options: object) -> Change:
    """Write a segment anew, with its footer's key kept and its number of rows stated."""

    def apply(place: Place) -> None:
        path = place.segment
        before = pq.read_table(path)
        after = change(before).replace_schema_metadata(before.schema.metadata)
        sink = io.BytesIO()
        pq.write_table(after, sink, compression="zstd", **options)
        path.write_bytes(sink.getvalue())
        document = json.loads(place.state.read_bytes())
        for segment in document["state"]["segments"]:
            if segment["name"] == path.name:
                segment["rows"] = after.num_rows
        place.state.write_text(json.dumps(document))

    return apply


def _cast(name: str, kind: pa.DataType) -> Change:
    def change(table: pa.Table) -> pa.Table:
        number = table.schema.get_field_index(name)
        return table.set_column(number, name, pa.nulls(table.num_rows, kind))

    return _rewritten(change)


def _repeated(text: str, rows: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        one = pa.DictionaryArray.from_arrays(
            pa.array([0] * rows, pa.int32()), pa.array([text], pa.large_string())
        )
        numbers = pa.array([1] * rows, pa.int64())
        columns = {"path": one, "length": numbers, "modified": numbers,
                   "etag": pa.nulls(rows, pa.large_string())}  # fmt: skip
        for name in table.schema.names:
            if name not in columns:
                columns[name] = pa.nulls(rows, table.schema.field(name).type)
        return pa.table(columns)

    return change


def _nested(table: pa.Table) -> pa.Table:
    kind: pa.DataType = pa.int64()
    for _ in range(400):
        kind = pa.list_(kind)
    return table.append_column("i1.deep", pa.nulls(table.num_rows, kind))


def _metadata_part(fields: list[object], columns: Mapping[str, pa.Array]) -> Change:
    return lambda place: write_part(place.metadata, "part-4.parquet", fields, columns)


_OBJECT = field("obj_name", "string", {"version": 4, "tableIdentifier": "/data/flights"})
_NAMES = pa.array(["/data/flights/f1#1000"])
_DEEP_TYPE: object = "long"
for _ in range(300):
    _DEEP_TYPE = array_of(_DEEP_TYPE)  # type: ignore[arg-type]

_PARQUETS: dict[str, Change] = {
    "path-of-integers": _cast("path", pa.int64()),
    "path-of-nulls": _cast("path", pa.large_string()),
    "length-of-text": _cast("length", pa.large_string()),
    "bounds-of-text": _cast("i1.min", pa.large_string()),
    "values-of-lists": _cast("i1.values", pa.list_(pa.int64())),
    "set-of-bounds": _cast("i2.set", pa.int64()),
    "words-of-structs": _cast("i3.words", pa.struct([("a", pa.int8())])),
    "no-path": _rewritten(lambda table: table.drop_columns(["path"])),
    "no-rows": _rewritten(lambda table: table.slice(0, 0)),
    "same-path": _rewritten(lambda table: pa.concat_tables([table.slice(0, 1)] * 50)),
    "two-columns-of-a-name": _rewritten(
        lambda table: table.append_column("length", table.column("length"))
    ),
    "nested": _rewritten(_nested),
    "many-columns": _rewritten(lambda table: pa.table({
        **{name: table.column(name) for name in table.schema.names},
        **{f"x{number}": pa.nulls(table.num_rows, pa.int8()) for number in range(4200)},
    })),
    "dictionary-bomb": _rewritten(_repeated("x" * 500_000, 200_000)),
    "words-of-endless-functions": _rewritten(lambda table: table.set_column(
        table.schema.get_field_index("i3.words"), "i3.words",
        pa.array([bytes.fromhex("000000017fffffff00000001") + b"\xff" * 8] * table.num_rows,
                 pa.large_binary()),
    )),
    "part-without-columns": _metadata_part([_OBJECT], {"x": _NAMES}),
    "part-of-deep-type": _metadata_part(
        [_OBJECT, field("a", _DEEP_TYPE, index_metadata("minmax", ["a"]))],
        {"obj_name": _NAMES, "a": pa.array([1])},
    ),
    "part-of-wrong-type": _metadata_part(
        [_OBJECT, field("a", struct_of("long"), index_metadata("minmax", ["a"]))],
        {"obj_name": _NAMES, "a": pa.array(["x"])},
    ),
    "part-of-odd-metadata": _metadata_part(
        [_OBJECT, field("a", "long", {"index": {"name": 5, "cols": [[]], "params": [1]}})],
        {"obj_name": _NAMES, "a": pa.array([1])},
    ),
    "part-of-text-metadata": _metadata_part(
        [field("obj_name", "string", {"version": "4", "encryption": "x"})], {"obj_name": _NAMES}
    ),
    "part-of-no-table": _metadata_part(
        [field("obj_name", "string", {"version": 4, "tableIdentifier": ["/"]})],
        {"obj_name": _NAMES},
    ),
    "part-of-huge-decimal": _metadata_part(
        [_OBJECT, field("a", struct_of("decimal(999,9)"), index_metadata("minmax", ["a"]))],
        {"obj_name": _NAMES, "a": pa.array([{"min": 1, "max": 2}])},
    ),
    "part-of-encryption": _metadata_part(
        [field("obj_name", "string", {
            "version": 4, "tableIdentifier": "/data/flights",
            "encryption": {"encryption.column.keys": "a:b:c", "encryption.footer.key": "k"},
        })],
        {"obj_name": _NAMES},
    ),
    "part-of-integers": _metadata_part([_OBJECT], {"obj_name": pa.array([1, 2])}),
}  # fmt: skip
