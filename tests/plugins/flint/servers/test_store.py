"""What the store promises: commits, atomic rows, and a form that readers of Flint understand."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from support.skipping.fakeopensearch import a_definition, an_index, price_rows, rows_of, unused_name

from snaploom.errors import IndexAlreadyExists, IndexUnreadable, StatementInvalid
from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import IndexState
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.documents import read_hits
from snaploom.plugins.flint.metadata import (
    OWN,
    FlintForm,
    document_id,
    file_uri,
    index_name,
    parse_metadata,
)
from snaploom.plugins.flint.store import OpenSearchBase, OpenSearchIndexStore, open_opensearch_base
from snaploom.skipping.core.definition import Target
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.stores.port import NOTHING, Segment, StoredState

FOREVER = EpochNanos(2**62)


def committed(
    store: OpenSearchIndexStore, *segments: Segment, definition: object = None
) -> StoredState:
    def build(before: StoredState) -> StoredState:
        return replace(
            before,
            phase=IndexState.ACTIVE,
            definition=definition or a_definition(),
            segments=(*before.segments, *segments),
        )

    return store.commit(build)


def bounds(files: FileTable) -> dict[str, tuple[int, int]]:
    names = ("path", "i1.min", "i1.max")
    paths, low, high = (files.column(name).to_pylist() for name in names)
    return dict(zip(paths, zip(low, high, strict=True), strict=True))


def flint_documents(client: OpenSearchClient, store: OpenSearchIndexStore) -> dict[str, dict]:
    hits = read_hits(client, store._name)
    return {hit.document_id: {k: v for k, v in hit.source.items() if k != OWN} for hit in hits}


def test_there_is_nothing_at_first(index_store: OpenSearchIndexStore) -> None:
    assert index_store.read() == NOTHING


def test_rows_come_back_when_committed(index_store: OpenSearchIndexStore) -> None:
    rows = {"file:/data/t/a b.parquet": (1, 2), "file:/data/t/c.parquet": (3, 4)}
    segments = index_store.write_rows([price_rows(rows)], a_definition())
    state = committed(index_store, *segments)
    assert bounds(index_store.open(state)) == rows
    assert index_store.read() == state


def test_rows_that_are_not_committed_are_not_seen(index_store: OpenSearchIndexStore) -> None:
    state = committed(
        index_store, *index_store.write_rows([price_rows({"file:/a": (1, 2)})], a_definition())
    )
    index_store.write_rows([price_rows({"file:/a": (8, 9), "file:/b": (0, 0)})], a_definition())
    assert bounds(index_store.open(state)) == {"file:/a": (1, 2)}


def test_later_rows_hide_earlier_ones(index_store: OpenSearchIndexStore) -> None:
    for number in range(3):
        rows = price_rows({"file:/a": (number, number), f"file:/{number}": (7, 7)})
        state = committed(index_store, *index_store.write_rows([rows], a_definition()))
    expected = {"file:/a": (2, 2), "file:/0": (7, 7), "file:/1": (7, 7), "file:/2": (7, 7)}
    assert bounds(index_store.open(state)) == expected


def test_removed_paths_are_gone(index_store: OpenSearchIndexStore) -> None:
    rows = {f"file:/{number}": (number, number) for number in range(4)}
    segments = index_store.write_rows([price_rows(rows)], a_definition())
    gone = index_store.write_removed(["file:/1", "file:/3"], a_definition())
    state = committed(index_store, *segments, gone)
    assert sorted(bounds(index_store.open(state))) == ["file:/0", "file:/2"]


def test_completing_rows_add_columns_for_us_and_for_readers_of_flint(client, index_store):
    first = a_definition()
    second = a_definition(*first.indexes, an_index("i2", "VALUE_SET", "code", "int"))
    rows = price_rows({"file:/a": (1, 2), "file:/b": (3, 4)})
    committed(index_store, *index_store.write_rows([rows], first))
    columns = {
        "i2.values": pa.array([2, 2], pa.int64()),
        "i2.nulls": pa.array([0, 0], pa.int64()),
        "i2.set": pa.array([[5], [6, 7]], pa.list_(pa.int32())),
    }
    added = index_store.write_rows([rows_of(columns, ["file:/a", "file:/b"])], second)
    merging = [replace(segment, merges=True) for segment in added]
    state = committed(index_store, *merging, definition=second)
    assert index_store.open(state).column("i2.set").to_pylist() == [[5], [6, 7]]
    client.refresh(index_store._name)
    shown = flint_documents(client, index_store).values()
    assert [one["code"] for one in sorted(shown, key=lambda one: one["file_path"])] == [[5], [6, 7]]
    metadata = parse_metadata(client.mapping(index_store._name)["_meta"])
    assert [column.name for column in metadata.columns] == ["price", "code"]


def test_documents_have_the_form_of_flint(client, index_store):
    definition = a_definition(
        an_index("i1", "MIN_MAX", "price", "bigint"),
        an_index("i2", "VALUE_SET", "code", "string"),
        an_index("i3", "BLOOM_FILTER", "ip", "string"),
        an_index("i4", "PARTITION", "day", "date"),
        an_index("i5", "MIN_MAX", "at", "timestamp"),
    )
    row = {"i1.min": 1, "i1.max": 2, "i2.set": [b"a", "é".encode()], "i3.words": b"\x00\xff"}
    row |= {"i4.value": 19000, "i5.min": 1_999, "i5.max": 1_999}
    counts = {f"i{n}.{name}": n for n in range(1, 6) for name in ("values", "nulls")}
    table = rows_of({name: [value] for name, value in (row | counts).items()}, ["file:/d/a b"])
    state = committed(
        index_store, *index_store.write_rows([table], definition), definition=definition
    )
    uri = "file:///d/a%20b"
    assert flint_documents(client, index_store) == {
        document_id(uri): {
            "file_path": uri,
            "MinMax_price_0": 1,
            "MinMax_price_1": 2,
            "code": ["a", "é"],
            "ip": "AP8=",
            "day": "2022-01-08",
            "MinMax_at_0": "1970-01-01T00:00:00.001000Z",
            "MinMax_at_1": "1970-01-01T00:00:00.002000Z",
        }
    }
    files = index_store.open(state)
    assert {name: files.column(name)[0].as_py() for name in row} == row


def test_every_type_of_value_comes_back_exactly(index_store: OpenSearchIndexStore) -> None:
    nan, infinity = float("nan"), float("-inf")
    kinds = {
        "double": [[nan, infinity, 0.1], [-0.0], None],
        "float": [[nan], [1.5], [infinity]],
        "decimal(38,2)": [["1.10", "-99999999999999999999999999999999999.99"], ["0.00"], []],
        "string": [[b"", "\U0001f600".encode()], [b"\xff\xfe"], None],
        "binary": [[b"\x00"], [b""], None],
        "timestamp": [[-(2**62)], [2**62], [0]],
        "date": [[-3_000_000], [3_000_000], [0]],
        "boolean": [[True, False], [False], None],
        "bigint": [[2**63 - 1, -(2**63)], [0], None],
    }
    indexes = [
        an_index(f"i{n}", "VALUE_SET", f"c{n}", kind) for n, kind in enumerate(kinds, start=1)
    ]
    definition = a_definition(*indexes)
    columns: dict[str, object] = {}
    for index, (kind, values) in zip(indexes, kinds.items(), strict=True):
        arrow = pa.list_({"decimal(38,2)": pa.decimal128(38, 2)}.get(kind, pa.null()))
        known = pa.array([3, 3, 3], pa.int64())
        columns |= {f"{index.index_id}.values": known, f"{index.index_id}.nulls": known}
        columns[f"{index.index_id}.set"] = _set_column(kind, values, arrow)
    rows = rows_of(columns, ["file:/a", "file:/b", "file:/c"])
    segments = index_store.write_rows([rows], definition)
    files = index_store.open(committed(index_store, *segments, definition=definition))
    for index in indexes:
        name = f"{index.index_id}.set"
        expected = rows.column(name).combine_chunks()
        assert str(files.column(name)) == str(expected.cast(files.column(name).type)), name


def _set_column(kind: str, values: list[object], decimal: pa.DataType) -> pa.Array:
    if kind.startswith("decimal"):
        return pa.array([[Decimal(one) for one in row] for row in values], decimal)
    inner = {
        "double": pa.float64(),
        "float": pa.float32(),
        "string": pa.large_binary(),
        "binary": pa.large_binary(),
        "timestamp": pa.int64(),
        "date": pa.int32(),
        "boolean": pa.bool_(),
        "bigint": pa.int64(),
    }[kind]
    return pa.array(values, pa.list_(inner))


@pytest.mark.parametrize("form", FlintForm)
def test_metadata_are_written_in_either_form(client: OpenSearchClient, form: FlintForm) -> None:
    store = OpenSearchIndexStore(client, unused_name(), form)
    committed(store, *store.write_rows([price_rows({"file:/a": (1, 2)})], a_definition()))
    metadata = parse_metadata(client.mapping(store._name)["_meta"])
    assert metadata.form is form
    assert metadata.source == "spark_catalog.default.t"
    assert [(c.kind, c.name, c.data_type) for c in metadata.columns] == [
        ("MIN_MAX", "price", "bigint")
    ]


def test_eight_racing_writers_commit_one_after_the_other(index_store: OpenSearchIndexStore) -> None:
    def add(number: int) -> None:
        rows = price_rows({f"file:/{number}": (number, number)})
        segments = index_store.write_rows([rows], a_definition())
        committed(index_store, *segments)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    state = index_store.read()
    assert state.version == 8
    assert sorted(bounds(index_store.open(state))) == [f"file:/{n}" for n in range(8)]


def test_a_builder_that_declines_commits_nothing(index_store: OpenSearchIndexStore) -> None:
    before = committed(index_store)
    assert index_store.commit(lambda state: None) == before


def test_missing_documents_make_the_index_unreadable(client, index_store):
    rows = price_rows({"file:/a": (1, 2)})
    state = committed(index_store, *index_store.write_rows([rows], a_definition()))
    client.delete_index(index_store._name)
    with pytest.raises(IndexUnreadable):
        index_store.open(state)


def test_sweeping_removes_what_no_state_needs_and_gives_ids_back(client, index_store):
    index_store.write_rows([price_rows({"file:/a": (8, 9), "file:/b": (8, 9)})], a_definition())
    rows = price_rows({"file:/a": (1, 2)})
    state = committed(index_store, *index_store.write_rows([rows], a_definition()))
    before = index_store.open(state)
    assert index_store.sweep(state, FOREVER)[0] == 2
    assert bounds(index_store.open(state)) == bounds(before) == {"file:/a": (1, 2)}
    client.refresh(index_store._name)
    assert list(flint_documents(client, index_store)) == [document_id(file_uri("file:/a"))]


def test_garbage_collection_keeps_young_segments(index_store: OpenSearchIndexStore) -> None:
    state = committed(index_store)
    segments = index_store.write_rows([price_rows({"file:/a": (1, 2)})], a_definition())
    assert index_store.sweep(state, EpochNanos(1)) == (0, 0)
    assert bounds(index_store.open(committed(index_store, *segments))) == {"file:/a": (1, 2)}


def test_compacting_keeps_the_rows(index_store: OpenSearchIndexStore) -> None:
    for number in range(3):
        rows = price_rows({"file:/a": (number, number), f"file:/{number}": (7, 7)})
        state = committed(index_store, *index_store.write_rows([rows], a_definition()))
    gone = index_store.write_removed(["file:/1"], a_definition())
    state = committed(index_store, gone)
    segments = index_store.compact(state)
    compacted = index_store.commit(lambda before: replace(before, segments=segments))
    assert len(segments) == 1
    assert bounds(index_store.open(compacted)) == bounds(index_store.open(state))
    index_store.sweep(compacted, FOREVER)
    assert len(bounds(index_store.open(compacted))) == 3


def test_destroying_leaves_the_state(client, index_store):
    rows = price_rows({"file:/a": (1, 2)})
    state = committed(index_store, *index_store.write_rows([rows], a_definition()))
    index_store.destroy()
    assert index_store.read() == state
    assert not client.exists(index_store._name)


def test_an_index_of_another_owner_is_unchanged(client, index_store):
    client.create_index(index_store._name, {"properties": {"year": {"type": "integer"}}})
    with pytest.raises(IndexAlreadyExists):
        index_store.write_rows([price_rows({"file:/a": (1, 2)})], a_definition())


def test_rows_that_flint_cannot_distinguish_are_hidden_from_it(client, index_store):
    definition = a_definition(an_index("i1", "MIN_MAX", "x", "double"))
    columns = {
        "i1.values": pa.array([2, None, 0], pa.int64()),
        "i1.nulls": pa.array([0, None, 3], pa.int64()),
        "i1.min": pa.array([1.0, None, None], pa.float64()),
        "i1.max": pa.array([float("nan"), None, None], pa.float64()),
    }
    rows = rows_of(columns, ["file:/nan", "file:/unknown", "file:/nulls"])
    segments = index_store.write_rows([rows], definition)
    shown = [one for one in flint_documents(client, index_store).values() if one]
    assert shown == [{"file_path": "file:///nulls"}]
    state = committed(index_store, *segments, definition=definition)
    assert index_store.open(state).count == 3


@pytest.fixture
def base(port: int) -> OpenSearchBase:
    return open_opensearch_base(f"opensearch://127.0.0.1:{port}", None)


def test_indexes_have_flints_name_and_are_found_by_their_target(base, client):
    target = Target("file:/data/named", table="spark_catalog.shop.named", format="parquet")
    definition = replace(a_definition(), target=target)
    store = base.index(target.uri)
    segments = store.write_rows([price_rows({"file:/data/named/a": (1, 2)})], definition)
    state = store.commit(
        lambda before: replace(before, definition=definition, segments=tuple(segments))
    )
    assert client.exists(index_name(target.table))
    again = base.index(target.uri)
    assert again.read() == state
    assert again.open(state).column("path").to_pylist() == ["file:/data/named/a"]
    assert store.uri in [one.uri for one in base.indexes()]
    assert base.index("file:/data/other").read().version == 0
    base.index(target.uri).destroy()
    assert not client.exists(index_name(target.table))


@pytest.mark.parametrize(
    "uri",
    [
        "opensearch://user:secret@host:9200",
        "opensearch://host/path",
        "opensearch://",
        "opensearch://host?form=OLD",
        "opensearch://host?hots=x",
    ],
)
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(StatementInvalid) as caught:
        open_opensearch_base(uri, None)
    assert "secret" not in str(caught.value)
