"""Documents that come from no file give what the same text in a file gives."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import files, model, output, simple, spoilt

from snaploom.loading.composer import compose, node_of, plain
from snaploom.loading.documents import read_object, read_resource

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
FAULTY = [
    pytest.param(spoilt(output(), "spec.dataModel.maxDepth", "3"), id="text for a number"),
    pytest.param(spoilt(output(), "spec.outputFolder.folderUri", True), id="boolean for text"),
    pytest.param(spoilt(output(), "spec.dataModel.maxDepht", 3), id="misspelt"),
    pytest.param(spoilt(files("a"), "kind", "JDBCDataSource"), id="former kind"),
    pytest.param(spoilt(files("a"), "apiVersion", "snaploom.io/v9"), id="version"),
    pytest.param(simple("a", "SELECT 1", snapshotQuery="SELECT 2"), id="swapped"),
    pytest.param([1, 2], id="a list"),
    pytest.param("text", id="text"),
]


@given(JSON)
def test_a_node_gives_its_value_back(value: Any) -> None:
    assert plain(node_of(value)) == value


@pytest.mark.parametrize("raw", FAULTY)
def test_findings_are_those_of_the_same_document_in_a_file(raw: Any) -> None:
    in_file = compose(json.dumps(raw)).documents[0].node
    assert read_object(raw) == read_resource(in_file)
    assert read_object(raw).findings


@pytest.mark.parametrize("raw", model(), ids=lambda raw: str(raw["kind"]))
def test_a_sound_object_is_read(raw: Any) -> None:
    read = read_object(raw)
    assert read.resource is not None
    assert read.findings == ()


def test_what_an_api_server_adds_is_read() -> None:
    cluster = {"uid": "u", "generation": 2, "managedFields": [{"fieldsV1": {"f:spec": {}}}]}
    raw = files("a")
    raw["metadata"] |= cluster
    assert read_object(raw).resource is not None
