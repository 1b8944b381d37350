"""Lineage is sent where the environment names a place, and nothing waits for it."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from support.declared.declarations import model, parsed
from support.servers.openlineage import lineage_server, read_event
from support.servers.ports import free_port

from snaploom.models.common import parse_instant
from snaploom.models.report import Report, RunPhase
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.plugins.lineage.activation import (
    LineageSettings,
    LineageSettingsInvalid,
    lineage_listener,
    lineage_settings,
)
from snaploom.plugins.lineage.events import LineageRun, start_of
from snaploom.plugins.lineage.listener import MOST_FAILURES, LineageListener, Sender, open_transport
from snaploom.run import runevents
from snaploom.run.runevents import Event, SnapshotStarted, Warned

AT = parse_instant("2020-01-03T00:00:00Z")
DAY = "2020-01-03T00:00:00Z"
ID = UUID(int=7)
KEY = "very-secret"


def bundle() -> Bundle:
    return bundle_for("OutputDataset", "wide", parsed(model()))


def settings_of(url: str, **more: str) -> LineageSettings:
    found = lineage_settings({"SNAPLOOM_LINEAGE_URL": url, **more})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://marquez:5000", "http://marquez:5000/api/v1/lineage"),
        ("https://lineage.example/", "https://lineage.example/api/v1/lineage"),
        ("http://gateway/open/lineage", "http://gateway/open/lineage"),
        ("file:///tmp/lineage.jsonl", "/tmp/lineage.jsonl"),
    ],
)
def test_an_address_names_the_place(url: str, place: str) -> None:
    assert settings_of(url).place == place


@pytest.mark.parametrize(
    "url",
    [
        "marquez:5000",
        "ftp://marquez",
        "http://",
        "file://host/tmp/a",
        f"http://user:{KEY}@marquez",
        f"http://marquez?api_key={KEY}",
    ],
)
def test_what_is_no_address_is_refused_without_a_secret(url: str) -> None:
    with pytest.raises(LineageSettingsInvalid) as raised:
        settings_of(url)
    assert KEY not in str(raised.value)


def test_without_an_address_nothing_is_sent() -> None:
    emitted: list[Event] = []
    with lineage_listener({}, emitted.append, lambda: False) as begin:
        assert begin is None
    assert emitted == []


def test_a_wrong_address_is_a_warning() -> None:
    emitted: list[Event] = []
    with lineage_listener(
        {"SNAPLOOM_LINEAGE_URL": "nowhere"}, emitted.append, lambda: False
    ) as begin:
        assert begin is None
    (warned,) = emitted
    assert isinstance(warned, Warned)
    assert "SNAPLOOM_LINEAGE_URL" in warned.message


def a_run(settings: LineageSettings, warnings: list[str]) -> None:
    listener = LineageListener(settings, lambda: AT, warnings.append, lambda: ID)
    run = listener.begin(bundle())
    run.take(SnapshotStarted(1, 1, AT))
    run.ended(
        Report(output="wide", run_id="r", phase=RunPhase.FAILED, started_at="2020-01-03T00:00:00Z")
    )
    listener.close(is_hurried=False)


def test_a_server_gets_events_in_order_with_its_key() -> None:
    warnings: list[str] = []
    with lineage_server() as server:
        a_run(settings_of(server.url, SNAPLOOM_LINEAGE_API_KEY=KEY), warnings)
    assert [event["eventType"] for event in server.events] == ["START", "START", "FAIL"]
    assert set(server.paths) == {"/api/v1/lineage"}
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert warnings == []
    for event in server.events:
        read_event(event)


def test_a_file_gets_a_line_for_each_event(tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    a_run(settings_of(f"file://{file}"), [])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["eventType"] for line in lines] == ["START", "START", "FAIL"]


def test_a_server_that_refuses_is_warned_about_once() -> None:
    warnings: list[str] = []
    with lineage_server(status=401) as server:
        a_run(settings_of(server.url, SNAPLOOM_LINEAGE_API_KEY=KEY), warnings)
    (warning,) = warnings
    assert "status 401" in warning
    assert KEY not in warning


def test_an_unreachable_server_is_warned_about_once() -> None:
    warnings: list[str] = []
    a_run(settings_of(f"http://127.0.0.1:{free_port()}"), warnings)
    (warning,) = warnings
    assert "ConnectionError" in warning


def test_after_some_failures_nothing_more_is_tried() -> None:
    with lineage_server(status=400) as server:
        settings = settings_of(server.url)
        sender = Sender(open_transport(settings), settings.place, lambda _: None)
        event = start_of(LineageRun(bundle(), ID, "snaploom"), AT)
        for _ in range(2 * MOST_FAILURES):
            sender.send(event)
        sender.close(60)
    assert len(server.events) == MOST_FAILURES


def test_a_server_that_does_not_answer_delays_nothing() -> None:
    warnings: list[str] = []
    began = time.monotonic()
    with lineage_server(stuck=threading.Event()) as server:
        settings = settings_of(server.url)
        sender = Sender(open_transport(settings), settings.place, warnings.append)
        sender.send(start_of(LineageRun(bundle(), ID, "snaploom"), AT))
        sender.close(0.1)
    assert "takes too long" in warnings[0]
    assert time.monotonic() - began < 60


# Listeners of others: what fails in one is a warning, and ends no run.

STARTED = SnapshotStarted(1, 1, AT)


def listener(fails: str) -> Any:
    """A listener that fails at one place."""

    def at(place: str) -> None:
        if place == fails:
            raise RuntimeError(f"at {place}")

    @contextmanager
    def listen(_environment: Mapping[str, str], _emit: Any, _is_hurried: Any) -> Iterator[Any]:
        at("enter")

        def begin(_bundle: Any) -> Any:
            at("begin")
            calls = ("take", "ended", "broke_off")
            return SimpleNamespace(**{call: lambda *_, call=call: at(call) for call in calls})

        yield begin
        at("exit")

    return listen


@pytest.mark.parametrize("fails", ["load", "enter", "begin", "take", "broke_off", "exit"])
def test_a_listener_that_fails_is_a_warning(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> Any:
        if fails == "load":
            raise AttributeError("at load")
        return listener(fails)

    entry = SimpleNamespace(name="theirs", load=load)
    monkeypatch.setattr(runevents, "entry_points", lambda group: [entry])
    emitted: list[Event] = []
    with runevents.run_listeners({}, emitted.append, lambda: False) as begin:
        follower = begin(bundle())
        follower.take(STARTED)
        follower.broke_off()
    (warned,) = emitted
    assert isinstance(warned, Warned)
    assert (
        f"theirs failed: {'AttributeError' if fails == 'load' else 'RuntimeError'}: at {fails}"
        in (warned.message)
    )
