"""Transient failures are retried, others are reported without secrets."""

import socket
import sys
from dataclasses import replace

import pytest
from support.skipping.fakeopensearch import FakeOpenSearch, a_definition

from snaploom.errors import IndexNotPossible
from snaploom.plugins.flint.client import (
    ATTEMPTS,
    ATTEMPTS_AWAITED,
    IndexStoreFailed,
    OpenSearchClient,
)
from snaploom.plugins.flint.options import Auth, OpenSearchOptions, RefreshPolicy
from snaploom.plugins.flint.segments import Action, Write, write_all
from snaploom.plugins.flint.store import OpenSearchIndexStore
from snaploom.skipping.stores.catalog import while_somebody_waits
from snaploom.skipping.stores.port import StoredState


def write(client: OpenSearchClient, count: int) -> None:
    writes = [Write(Action.INDEX, {"n": n}, f"d{n}") for n in range(count)]
    assert list(write_all(client, "t", writes, RefreshPolicy.NONE)) == []


def test_only_items_that_failed_are_sent_again(client, fake):
    fake.faults.items = [200, 429, 200, 503]
    write(client, 5)
    assert fake.bulk_sizes == [5, 2]
    assert sorted(fake.indexes["t"].documents) == [f"d{n}" for n in range(5)]


def test_refused_requests_are_sent_again(client: OpenSearchClient, fake: FakeOpenSearch) -> None:
    fake.faults.requests = [429, 503, 429]
    write(client, 2)
    assert fake.bulk_sizes == [2]


def test_an_endless_refusal_ends(client: OpenSearchClient, fake: FakeOpenSearch) -> None:
    fake.faults.requests = [429] * ATTEMPTS
    with pytest.raises(IndexStoreFailed, match="429"):
        write(client, 1)
    fake.faults.items = [429] * ATTEMPTS
    with pytest.raises(IndexStoreFailed, match="1 documents were put off"):
        write(client, 1)


def test_a_bad_document_is_reported(client: OpenSearchClient, fake: FakeOpenSearch) -> None:
    fake.faults.items = [400]
    with pytest.raises(IndexStoreFailed, match="a fault"):
        write(client, 1)


def test_batches_are_bounded(fake_options: OpenSearchOptions, fake: FakeOpenSearch) -> None:
    with OpenSearchClient(replace(fake_options, batch_size=4)) as client:
        write(client, 10)
    assert fake.bulk_sizes == [4, 4, 2]


def test_a_commit_whose_answer_is_lost_is_recognised(client, fake):
    store = OpenSearchIndexStore(client, "flint_t_skipping_index")
    for version in (1, 2):
        fake.faults.lost_answers = 1
        state = store.commit(
            lambda before: StoredState(version=0, definition=a_definition(), message="hello")
        )
        assert state.version == version
        assert store.read() == state


def test_basic_sends_the_user(fake_options: OpenSearchOptions, fake: FakeOpenSearch) -> None:
    options = replace(fake_options, auth=Auth.BASIC, username="Aladdin", password="open sesame")
    with OpenSearchClient(options) as client:
        client.exists("t")
    found = {name.lower(): value for name, value in fake.headers[-1].items()}
    assert found["authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


def test_sigv4_without_botocore_names_the_extra(fake_options, monkeypatch):
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(IndexNotPossible, match=r"(?s)botocore.*snaploom\[sigv4\]"):
        OpenSearchClient(replace(fake_options, auth=Auth.SIGV4))


def test_no_password_is_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    options = OpenSearchOptions(
        host="127.0.0.1", port=9, auth=Auth.BASIC, username="u", password="s3cr3t"
    )
    monkeypatch.setattr("snaploom.plugins.flint.client.ATTEMPTS", 1)
    with pytest.raises(IndexStoreFailed, match="no answer") as caught:
        OpenSearchClient(options).exists("t")
    assert "s3cr3t" not in f"{caught.value} {options} {caught.value.__cause__}"


def test_a_request_of_a_waiting_caller_is_tried_twice(client, fake):
    client.create_index("t", {})
    fake.faults.reads = [429] * ATTEMPTS
    with while_somebody_waits(), pytest.raises(IndexStoreFailed, match="429"):
        client.get("t", "x")
    assert len(fake.faults.reads) == ATTEMPTS - ATTEMPTS_AWAITED


def test_a_server_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snaploom.plugins.flint.client.WAITING_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = OpenSearchOptions(host="127.0.0.1", port=silent.getsockname()[1])
        client = OpenSearchClient(options)
        with client, while_somebody_waits(), pytest.raises(IndexStoreFailed, match="no answer"):
            client.exists("t")
