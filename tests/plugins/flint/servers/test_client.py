"""Reading, writing and Flint's client, over the real OpenSearch and the fake."""

import pytest
from support.skipping.fakeopensearch import options_of, unused_name

from snaploom.errors import IndexAlreadyExists, IndexNotFound, StatementInvalid
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.documents import read_hits
from snaploom.plugins.flint.flintclient import FlintClient
from snaploom.plugins.flint.metadata import FlintColumn, FlintForm, FlintMetadata
from snaploom.plugins.flint.options import RefreshPolicy
from snaploom.plugins.flint.segments import Action, Write, write_all


@pytest.fixture
def flint(port: int) -> FlintClient:
    return FlintClient("127.0.0.1", port, write_refresh_policy="true", read_scroll_size="7")


@pytest.mark.parametrize("form", FlintForm)
def test_metadata_come_back(flint: FlintClient, form: FlintForm) -> None:
    column = FlintColumn(kind="VALUE_SET", name="code", data_type="int")
    metadata = FlintMetadata(source="alb_logs", columns=(column,), form=form)
    name = unused_name()
    flint.create_index(name, metadata)
    found = flint.get_index_metadata(name)
    assert (found.source, found.columns, found.form) == ("alb_logs", (column,), form)
    with pytest.raises(IndexAlreadyExists):
        flint.create_index(name, metadata)
    assert flint.exists(name)
    assert flint.delete_index(name)
    assert not flint.exists(name)
    assert not flint.delete_index(name)


def test_an_absent_index_is_not_found(flint: FlintClient) -> None:
    with pytest.raises(IndexNotFound):
        flint.get_index_metadata("flint_absent")
    with pytest.raises(IndexNotFound):
        flint.create_reader("flint_absent").has_next()


def test_the_seeds_example_writes_and_reads(flint: FlintClient) -> None:
    name = unused_name()
    writer = flint.create_writer(name)
    for piece in ('{"create":{}}', "\n", '{"aInt":1}', "\n"):
        writer.write(piece)
    writer.flush()
    writer.close()
    reader = flint.create_reader(name, None)
    found = []
    while reader.has_next():
        found.append(reader.next())
    reader.close()
    assert found == ['{"aInt": 1}']


def test_lines_that_are_not_bulk_are_refused(flint: FlintClient) -> None:
    writer = flint.create_writer(unused_name())
    writer.write('{"create":{}}\n{"aInt":1}\nnonsense\n')
    with pytest.raises(StatementInvalid, match="line 3"):
        writer.flush()


def test_ten_thousand_documents_are_paged(port: int) -> None:
    name = unused_name()
    with OpenSearchClient(options_of(port, scroll_size=500)) as client:
        client.create_index(name, {"properties": {"n": {"type": "integer"}}}, shards=2)
        writes = (Write(Action.CREATE, {"n": n}, f"d{n}") for n in range(10_500))
        assert list(write_all(client, name, writes, RefreshPolicy.IMMEDIATE)) == []
        assert sorted(hit.source["n"] for hit in read_hits(client, name)) == list(range(10_500))


@pytest.mark.parametrize("policy", RefreshPolicy)
def test_every_refresh_policy_is_taken(client: OpenSearchClient, policy: RefreshPolicy) -> None:
    name = unused_name()
    assert list(write_all(client, name, [Write(Action.INDEX, {"n": 1}, "one")], policy)) == []
    found = client.get(name, "one")
    assert found.source == {"n": 1}
    if policy is not RefreshPolicy.NONE:
        assert [hit.document_id for hit in read_hits(client, name)] == ["one"]


def test_conflicts_are_answers(client: OpenSearchClient) -> None:
    name = unused_name()
    first, second = (Write(Action.CREATE, {"n": n}, "one") for n in (1, 2))
    assert list(write_all(client, name, [first], RefreshPolicy.NONE)) == []
    assert list(write_all(client, name, [second], RefreshPolicy.NONE)) == [second]


def test_a_conditional_write_loses_to_a_later_one(client: OpenSearchClient) -> None:
    name = unused_name()
    assert client.put(name, "state", {"n": 1}, None)
    assert not client.put(name, "state", {"n": 2}, None)
    before = client.get(name, "state")
    assert client.put(name, "state", {"n": 3}, before)
    assert not client.put(name, "state", {"n": 4}, before)
