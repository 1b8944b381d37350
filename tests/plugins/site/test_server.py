"""`snaploom serve` over HTTP: pages as of now, for this machine only, and nothing else."""

import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from itertools import islice
from pathlib import Path
from threading import Event, Thread

import pytest
from support.site.histories import Events, declarations, write_history

from snaploom.cli.main import run_command
from snaploom.errors import ArgumentInvalid
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.plugins.site.commands import MOST_AT_ONCE, PageSource, Served, page_server

FEW = Events(gaps=(), deleted=(), restated=(), doubtful=())


@contextmanager
def serving(folder: Path) -> Iterator[HTTPConnection]:
    source = PageSource([folder / "model.yaml"], (), NO_ALLOWANCES)
    with page_server(source, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        connection = HTTPConnection("127.0.0.1", int(server.server_address[1]), timeout=60)
        try:
            yield connection
        finally:
            connection.close()
            server.shutdown()
            thread.join()


def asked(
    connection: HTTPConnection, path: str = "/", method: str = "GET", **headers: str
) -> tuple[HTTPResponse, str]:
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


@pytest.fixture
def output(tmp_path: Path) -> Path:
    declarations(tmp_path, tmp_path / "out")
    write_history(tmp_path / "out", 3, FEW)
    return tmp_path


def test_page_is_as_of_now(output: Path) -> None:
    with serving(output) as connection:
        answer, before = asked(connection)
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        shutil.rmtree(output / "out")
        write_history(output / "out", 4, FEW)
        _, after = asked(connection)
    assert ["<code>2024-01-04" in page for page in (before, after)] == [False, True]


def test_version_changes_with_what_is_published_only(output: Path) -> None:
    with serving(output) as connection:
        versions = [asked(connection, method="HEAD")[0].headers["X-Snaploom-Version"]]
        versions += [asked(connection)[0].headers["X-Snaploom-Version"]]
        shutil.rmtree(output / "out")
        versions += [asked(connection, method="HEAD")[0].headers["X-Snaploom-Version"]]
    assert versions[0] == versions[1] != versions[2]


def test_page_carries_the_version_that_it_shows(output: Path) -> None:
    with serving(output) as connection:
        answer, body = asked(connection)
    assert f'content="{answer.headers["X-Snaploom-Version"]}"' in body
    assert "connect-src &#x27;self&#x27;" in body or "connect-src 'self'" in body


def test_other_names_of_this_machine_are_not_answered(output: Path) -> None:
    with serving(output) as connection:
        assert asked(connection, Host="pages.example.com")[0].status == 421
        assert asked(connection, Host="localhost:1")[0].status == 200
        assert asked(connection, Host="[::1]:1")[0].status == 200


@pytest.mark.parametrize("host", ["[", "a]b[", "[::1", "[x]"])
def test_what_is_no_address_is_a_bad_request(output, capsys, host):
    with serving(output) as connection:
        assert asked(connection, Host=host)[0].status == 400
        assert asked(connection)[0].status == 200
    assert capsys.readouterr().err == ""


def test_many_who_wait_share_one_look_and_more_are_refused(output, monkeypatch):
    looks, passed = [], Event()

    def look(self: PageSource) -> Served:
        looks.append(self)
        passed.wait(20)
        return Served("1", {"index.html": "page"})

    monkeypatch.setattr(PageSource, "_look", look)
    with serving(output) as connection, ThreadPoolExecutor(50) as threads:

        def ask() -> int:
            each = HTTPConnection(connection.host, connection.port, timeout=20)
            return asked(each)[0].status

        answers = [threads.submit(ask) for _ in range(50)]
        refused = list(islice(as_completed(answers, 20), 50 - MOST_AT_ONCE))
        passed.set()
        statuses = [each.result() for each in answers]
    assert [each.result() for each in refused] == [503] * (50 - MOST_AT_ONCE)
    assert statuses.count(200) == MOST_AT_ONCE
    assert len(looks) <= 2


def test_a_request_that_never_ends_is_cut_off(output, monkeypatch):
    monkeypatch.setattr("snaploom.plugins.site.commands.LONGEST_ANSWER", 0.1)
    with serving(output) as connection:
        silent = socket.create_connection((connection.host, connection.port), timeout=20)
        with silent:
            silent.sendall(b"GET / HTTP/1.1\r\nHost: loc")
            assert silent.recv(1) == b""


@pytest.mark.parametrize("path", ["/../model.yaml", "/model.yaml", "//etc/passwd", "/%2e%2e/x"])
def test_there_is_nothing_but_pages(output: Path, path: str) -> None:
    with serving(output) as connection:
        assert asked(connection, path)[0].status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_is_taken(output: Path, method: str) -> None:
    with serving(output) as connection:
        assert asked(connection, method=method)[0].status == 501


def test_declarations_that_break_are_a_page_until_they_are_repaired(output: Path) -> None:
    file = output / "model.yaml"
    text = file.read_text()
    with serving(output) as connection:
        file.write_text(text.replace("spec:", "spek:", 1))
        broken = asked(connection)[1]
        file.write_text(text)
        sound = asked(connection)[1]
    assert "<h1>Declarations</h1>" in broken
    assert "spek" in broken
    assert "<h1>orders-wide" in sound


def test_port_that_is_taken_is_one_error(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with pytest.raises(ArgumentInvalid):
            page_server(PageSource([], (), NO_ALLOWANCES), "127.0.0.1", int(port))
        assert run_command(["serve", "-f", str(output), "--port", port]) == 2
    assert "error ArgumentInvalid --port" in capsys.readouterr().err


def test_what_is_wrong_from_the_start_is_an_error(output, capsys):
    assert run_command(["serve", "orders", "-f", str(output), "--port", "0"]) == 2
    assert "orders-wide" in capsys.readouterr().err
