"""What a forged state cannot have removed: other indexes of OpenSearch, directories of others."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.hostile.indexfolders import NEIGHBOUR_URI, Place, make_good
from support.skipping.fakeopensearch import FakeOpenSearch, options_of, serving
from support.skipping.faketarget import FakeTarget
from support.skipping.indexstores import URI, committed, write

from snaploom.errors import IndexNotPossible, IndexUnreadable, SkippingError
from snaploom.files.local import LocalObjectStore
from snaploom.models.skippingindex import Index, IndexState
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.store import OWN_INDEX, OpenSearchIndexStore
from snaploom.skipping.core.definition import SkippingDefinition, Target
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.operations import create, drop, refresh, vacuum
from snaploom.skipping.stores.catalog import FolderBase
from snaploom.skipping.stores.folder import folder_name
from snaploom.skipping.stores.port import StoredState

KEY = folder_name(URI)


@pytest.fixture
def client() -> Iterator[OpenSearchClient]:
    with serving(FakeOpenSearch()) as port, OpenSearchClient(options_of(port)) as made:
        yield made


def forge(client: OpenSearchClient, **changes: object) -> None:
    """Write into the state's document what an enemy would."""
    found = client.get(OWN_INDEX, KEY)
    assert found is not None
    document = {**found.source["document"], **changes}
    assert client.put(OWN_INDEX, KEY, {**found.source, "document": document}, found)


def dropped(client: OpenSearchClient) -> OpenSearchIndexStore:
    store = OpenSearchIndexStore(client, key=KEY)
    committed(store, *write(store, {"a": (1, 5)}))
    drop(store)
    return store


@pytest.mark.parametrize(
    "name",
    ["customers", "*", "_all", "flint_*_skipping_index", "a,b", "flint_x_skipping_index,customers",
     "flint_path_0_skipping_index", "-x", "flint_/../customers_skipping_index", 5, ["customers"]],
)  # fmt: skip
def test_vacuum_deletes_no_index_of_others(client: OpenSearchClient, name: object) -> None:
    dropped(client)
    client.create_index("customers", {"properties": {"name": {"type": "keyword"}}})
    client.create_index("flint_path_0_skipping_index", {"properties": {}})
    forge(client, rows=name)
    with pytest.raises(IndexUnreadable):
        vacuum(OpenSearchIndexStore(client, key=KEY))
    assert client.exists("customers")
    assert client.exists("flint_path_0_skipping_index")


def test_vacuum_deletes_no_index_that_has_no_rows_of_ours(client: OpenSearchClient) -> None:
    store = dropped(client)
    client.delete_index(store._name)
    client.create_index(store._name, {"properties": {"name": {"type": "keyword"}}})
    with pytest.raises(SkippingError, match="somebody else"):
        vacuum(OpenSearchIndexStore(client, key=KEY))
    assert client.exists(store._name)


@pytest.mark.parametrize("document", [5, [], None, {"state": 5}, {"state": "["}, {"rows": "x"}])
def test_a_state_of_another_form_is_damaged(client: OpenSearchClient, document: object) -> None:
    dropped(client)
    found = client.get(OWN_INDEX, KEY)
    assert found is not None
    client.put(OWN_INDEX, KEY, {**found.source, "document": document}, found)
    with pytest.raises(IndexUnreadable):
        OpenSearchIndexStore(client, key=KEY).read()


def test_a_state_of_another_target_is_damaged(client: OpenSearchClient) -> None:
    dropped(client)
    found = client.get(OWN_INDEX, KEY)
    assert found is not None
    state = found.source["document"]["state"].replace(URI, f"{URI}2")
    forge(client, state=state)
    with pytest.raises(IndexUnreadable, match="damaged"):
        OpenSearchIndexStore(client, key=KEY).read()


# Directories that others read, at the place that the name of a table gives.


def forged(definition: SkippingDefinition) -> SkippingDefinition:
    return replace(definition, form="XSKIPPER", target=Target(URI, table="/data/neighbour"))


def parts(place: Place) -> list[Path]:
    return sorted((place.base / folder_name("/data/neighbour")).glob("*.parquet"))


def test_a_directory_of_another_index_is_not_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = make_good(tmp_path)
    before = parts(place)
    store = FolderBase(LocalObjectStore(place.base, create=False)).index(URI)

    def build(state: StoredState) -> StoredState:
        assert state.definition is not None
        return replace(state, phase=IndexState.DELETED, definition=forged(state.definition))

    store._native.commit(build)
    with caplog.at_level(logging.WARNING):
        vacuum(store)
    assert before
    assert parts(place) == before
    assert "another index's" in caplog.text


def test_a_directory_of_another_index_is_not_replaced(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    before = [path.read_bytes() for path in parts(place)]
    base = FolderBase(LocalObjectStore(place.base, create=False))
    target = FakeTarget(columns={"a": "bigint"}, uri="s3a://elsewhere/data/neighbour")
    target.put("f", 1)
    store = base.index(target.uri)
    with pytest.raises(IndexNotPossible, match="belongs to another"):
        create(store, target, Declaration((Index(type="MIN_MAX", column="a"),), form="XSKIPPER"))
    assert [path.read_bytes() for path in parts(place)] == before


def test_who_owns_a_directory_replaces_and_removes_it(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    store = FolderBase(LocalObjectStore(place.base, create=False)).index(NEIGHBOUR_URI)
    target = FakeTarget(columns={"a": "bigint"}, uri=NEIGHBOUR_URI)
    target.put("new", 7)
    before = parts(place)
    refresh(store, target)
    assert parts(place) != before
    drop(store)
    vacuum(store)
    assert parts(place) == []
    assert list((place.base / folder_name("/data/neighbour")).glob("*")) == []


def test_a_terabyte_beside_the_parts_of_a_directory_is_not_read(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    huge = parts(place)[0].with_name("part-huge.parquet")
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    target = FakeTarget(columns={"a": "bigint"}, uri=NEIGHBOUR_URI)
    target.put("new", 7)
    refresh(FolderBase(LocalObjectStore(place.base, create=False)).index(NEIGHBOUR_URI), target)
    assert not huge.exists()
    assert parts(place)


def test_a_state_that_lies_elsewhere_is_damaged(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    neighbours = place.base / folder_name(NEIGHBOUR_URI) / "manifest"
    newest = max(neighbours.glob("*.json"))
    (place.index / "manifest" / newest.name).write_bytes(newest.read_bytes())
    (place.index / "_latest").write_text(json.dumps({"version": int(newest.stem)}))
    store = FolderBase(LocalObjectStore(place.base, create=False)).index(URI)
    with pytest.raises(IndexUnreadable, match="damaged"):
        store.read()


@pytest.mark.parametrize("mode", ["jdbc", "", "full", "/etc/passwd", 5])
def test_a_state_with_a_mode_of_no_refresh_is_damaged(tmp_path: Path, mode: object) -> None:
    place = make_good(tmp_path)
    newest = max((place.index / "manifest").glob("*.json"))
    document = json.loads(newest.read_bytes())
    document["state"]["definition"]["mode"] = mode
    newest.write_text(json.dumps(document))
    with pytest.raises(IndexUnreadable, match="damaged"):
        FolderBase(LocalObjectStore(place.base, create=False)).index(URI).read()
