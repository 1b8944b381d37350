"""Servers that declarations and settings name: which are asked, and what their answers can do."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

import pytest
from pydantic import ValidationError
from support.declared.declarations import Raw, document, files, output, parsed
from support.skipping.fakeopensearch import a_definition, options_of

from snaploom import endpoints as connections
from snaploom.endpoints import EndpointRefused, connect, origin_of
from snaploom.errors import IndexNotPossible, KeyUnavailable, SkippingError
from snaploom.models.allowances import ALLOW_VARIABLE, Allowances
from snaploom.models.skippingindex import SkippingIndex
from snaploom.plugins import vault
from snaploom.plugins.flint import client as opensearch_client
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.segments import DocumentReader
from snaploom.plugins.flint.store import OpenSearchIndexStore, open_opensearch_base
from snaploom.plugins.lineage import listener
from snaploom.plugins.lineage.activation import lineage_settings
from snaploom.plugins.vault import VaultKeyService
from snaploom.policy.addresses import (
    OF_ADMINISTRATOR,
    EndpointRules,
    declared_rules,
    meant,
    refusal_of_address,
    refusal_of_host,
)
from snaploom.skipping.stores.catalog import while_somebody_waits
from snaploom.skipping.stores.port import Segment
from snaploom.validate.validator import validate


@dataclass
class Server:
    """A running server."""

    port: int = 0
    requests: list[str] = field(default_factory=list)
    """Methods and paths that were asked for."""
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Iterator[Server]:
    """A server that answers every request in one way."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            server.requests.append(f"{self.command} {self.path}")
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            try:
                answer(self)
            except OSError:
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def redirecting(to: str, status: int = 307) -> Answer:
    """Redirects every request elsewhere."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def json_answer(document: object, status: int = 200) -> Answer:
    """Answers with JSON."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def bomb(size: int) -> Answer:
    """Answers with so many bytes, packed to a thousandth."""
    body = gzip.compress(b" " * size)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65_536)


def dripping(handler: BaseHTTPRequestHandler) -> None:
    for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(0.05)


def dripping_body(handler: BaseHTTPRequestHandler) -> None:
    """Answers with a body whose first line, the length of a chunk, comes a byte now and then."""
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(600):
        handler.wfile.write(b"0")
        handler.wfile.flush()
        time.sleep(0.05)


IN_CLUSTER = EndpointRules(loopback=False)
JOB = {ALLOW_VARIABLE: "{}"}

METADATA = [
    "169.254.169.254", "169.254.0.1", "fe80::1", "[fe80::1]", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::a9fe:a9fe", "fd00:ec2::254", "100.100.100.200",
    "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:100::100:200",
    "fd00:a9fe:a9fe::1", "fd00:42::42", "168.63.129.16", "2852039166",
    "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518",
    "metadata.google.internal", "METADATA.google.internal.", "metadata",
]  # fmt: skip
NO_SERVERS = ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "0.0.0.1", "240.0.0.1"]
THIS_MACHINE = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "2130706433", "0x7f.1"]
NO_HOSTS = [
    "", "a b", "a/b", "user@host", "host?x=1", "host#x", "a\nb", "a\0b", "-host", "h" * 300,
    "fe80::1%eth0", "host:9200", "é.example",
]  # fmt: skip


@pytest.mark.parametrize("rules", [IN_CLUSTER, OF_ADMINISTRATOR], ids=["declared", "own"])
@pytest.mark.parametrize("host", [*METADATA, *NO_SERVERS, *NO_HOSTS])
def test_hosts_that_are_never_servers_are_always_refused(host: str, rules: EndpointRules) -> None:
    assert refusal_of_host(host, 443, rules)
    listed = replace(rules, entries=(host,)) if host else rules
    assert refusal_of_host(host, 443, listed)


@pytest.mark.parametrize("host", THIS_MACHINE)
def test_the_machine_itself_is_refused_only_to_declarations_in_a_cluster(host: str) -> None:
    assert refusal_of_host(host, 9200, IN_CLUSTER)
    assert not refusal_of_host(host, 9200, EndpointRules())
    assert not refusal_of_host(host, 9200, OF_ADMINISTRATOR)


@pytest.mark.parametrize("host", ["search", "10.0.0.7", "192.168.1.1", "fd12::7", "search.svc."])
def test_private_servers_are_asked(host: str) -> None:
    assert not refusal_of_host(host, 9200, IN_CLUSTER)


@pytest.mark.parametrize(
    ("entries", "host", "port", "is_allowed"),
    [
        (("search.svc",), "search.svc", 9200, True),
        (("search.svc",), "SEARCH.svc.", 9200, True),
        (("search.svc:9200",), "search.svc", 9201, False),
        (("*.svc",), "search.svc", 9200, True),
        (("*.svc",), "search.example", 9200, False),
        (("*.svc:9200",), "search.svc", 9200, True),
        (("[fd12::7]:9200",), "fd12::7", 9200, True),
        (("fd12::7",), "[fd12::7]", 9200, True),
        (("*", "127.0.0.1:9200"), "elsewhere", 1, True),
        (("*", "127.0.0.1:9200"), "127.0.0.1", 9200, True),
        (("*", "127.0.0.1:9200"), "127.0.0.1", 4040, False),
        (("*",), "127.0.0.1", 9200, False),
    ],
)
def test_the_list_decides_which_hosts_may_be_named(entries, host, port, is_allowed):
    rules = EndpointRules(loopback=False, entries=entries)
    assert (refusal_of_host(host, port, rules) == "") == is_allowed


def test_an_operators_job_has_the_rules_of_a_cluster() -> None:
    allow = json.dumps({"endpoints": ["search:9200"]})
    assert declared_rules({ALLOW_VARIABLE: allow}) == EndpointRules(False, ("search:9200",))
    assert declared_rules(JOB) == IN_CLUSTER
    assert declared_rules({}) == EndpointRules()


def wrapped(text: str) -> list[str]:
    """Every IPv6 address that stands for an IPv4 address."""
    number = int(ip_address(text))
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    octets = [number >> 24, number >> 16 & 255, number >> 8 & 255, number & 255]
    a, b, c, d = (f"{octet:02x}" for octet in octets)
    return [
        f"::ffff:{text}", f"::{text}", f"::ffff:0:{text}", f"64:ff9b::{text}", f"64:ff9b:1::{text}",
        f"64:ff9b:1:7::{text}", f"64:ff9b:1:{a}{b}:{c}:{d}00::", f"64:ff9b:1:{a}:{b}:{c}{d}::",
        f"64:ff9b:1:1{a}:{b}:{c}{d}::", f"64:ff9b:1:0:{a}:{b}{c}:{d}00::", f"2002:{high}:{low}::1",
        f"2001:db8::5efe:{text}", f"2001:db8::200:5efe:{text}",
        f"2001:0:{high}:{low}::", f"2001:0:a00:1::{number >> 16 ^ 0xFFFF:x}:{~number & 0xFFFF:x}",
    ]  # fmt: skip


FORBIDDEN = ["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "127.0.0.1"]


@pytest.mark.parametrize("text", [each for ip in FORBIDDEN for each in wrapped(ip)])
def test_a_forbidden_ipv4_address_is_refused_however_it_is_wrapped(text: str) -> None:
    assert refusal_of_host(text, 443, IN_CLUSTER)
    assert refusal_of_address(ip_address(text), IN_CLUSTER, "search", 443)


@pytest.mark.parametrize("text", wrapped("10.0.0.1")[:-2])
def test_a_private_ipv4_address_is_asked_however_it_is_wrapped(text: str) -> None:
    assert ip_address("10.0.0.1") in meant(ip_address(text))
    assert not refusal_of_address(ip_address(text), IN_CLUSTER, "search", 9200)


# Names that resolve to what may not be asked.


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let names resolve to these addresses, one list a time; returns what is asked for."""
    asked: list[str] = []

    def find(host: str, port: int, **_: object) -> list[object]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        family = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in found]
        return [
            (kind, socket.SOCK_STREAM, 6, "", (each, port))
            for kind, each in zip(family, found, strict=True)
        ]

    monkeypatch.setattr(connections.socket, "getaddrinfo", find)
    return asked


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "127.0.0.1", "0.0.0.0"])
def test_a_name_is_judged_by_what_it_resolves_to(monkeypatch, address):
    resolving(monkeypatch, [address])
    with pytest.raises(EndpointRefused):
        connect("innocent.example", 80, 1, IN_CLUSTER)


def test_a_name_that_changes_its_mind_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(json_answer({})) as server:
        asked = resolving(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
        with connect("rebinding.example", server.port, 5, EndpointRules()) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"
        assert asked == ["rebinding.example"]
        with pytest.raises(EndpointRefused):
            connect("rebinding.example", server.port, 5, EndpointRules())


def test_of_several_addresses_only_allowed_ones_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(json_answer({})) as server:
        resolving(monkeypatch, ["169.254.169.254", "127.0.0.1"])
        with connect("both.example", server.port, 5, EndpointRules()) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["a..example", f"{'a' * 64}.example"])
def test_a_name_that_cannot_be_asked_for_is_refused(host: str) -> None:
    with pytest.raises(EndpointRefused, match="empty or too long"):
        connect(host, 80, 1, OF_ADMINISTRATOR)


def test_a_few_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    class Deaf(socket.socket):
        def connect(self, place: object) -> None:
            tried.append(place)
            raise TimeoutError

    resolving(monkeypatch, [f"10.0.0.{number}" for number in range(1, 100)])
    monkeypatch.setattr(connections.socket, "socket", Deaf)
    with pytest.raises(TimeoutError):
        connect("many.example", 80, 1, IN_CLUSTER)
    assert len(tried) == connections.MOST_TRIES


# The three clients, each by the way that it has.


def of_opensearch(server: Server) -> None:
    with while_somebody_waits(), OpenSearchClient(options_of(server.port)) as client:
        client.mapping("flint_t_skipping_index")


def of_keys(server: Server) -> None:
    VaultKeyService(f"{server.url}/v1/transit", {"VAULT_TOKEN": "t0ken"}).unwrap("a", "b")


def of_lineage(server: Server) -> None:
    settings = lineage_settings(
        {"SNAPLOOM_LINEAGE_URL": server.url, "SNAPLOOM_LINEAGE_API_KEY": "t0ken"}
    )
    assert settings is not None
    listener.open_transport(settings).session.post(  # type: ignore[attr-defined]
        f"{server.url}/api", data="{}", headers={"Authorization": "t0ken"}, timeout=2
    )


CLIENTS = pytest.mark.parametrize(
    "ask", [of_opensearch, of_keys, of_lineage], ids=["opensearch", "keys", "lineage"]
)
ENDED = (SkippingError, EndpointRefused, OSError)
"""What callers expect: requests' and openlineage's errors are `OSError`."""


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limits, smaller, so that they are met at once."""
    monkeypatch.setattr(vault, "TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(opensearch_client, "WAITING_SECONDS", 1.0)
    monkeypatch.setattr(opensearch_client, "LONGEST_ANSWER", 4 << 20)


@CLIENTS
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(ask: Callable[[Server], None], status: int) -> None:
    with serving(json_answer({})) as elsewhere:
        with serving(redirecting(f"{elsewhere.url}/stolen", status)) as server:
            with pytest.raises(ENDED):
                ask(server)
            assert server.requests
        assert elsewhere.requests == []


@CLIENTS
@pytest.mark.parametrize("answer", [endless, bomb(64 << 20)], ids=["endless", "packed"])
def test_a_long_answer_is_not_read(ask: Callable[[Server], None], answer: object) -> None:
    began = time.monotonic()
    with serving(answer) as server, pytest.raises(ENDED):  # type: ignore[arg-type]
        ask(server)
    assert time.monotonic() - began < 20


@CLIENTS
@pytest.mark.parametrize("answer", [dripping, dripping_body])
def test_an_answer_that_drips_is_not_waited_for(ask, answer):
    began = time.monotonic()
    with serving(answer) as server, pytest.raises(ENDED):
        ask(server)
    assert time.monotonic() - began < 20


def test_a_handshake_that_drips_is_not_waited_for() -> None:
    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(b"\x16\x03\x03\x40\x00")
            while True:
                connection.sendall(b"\x02")
                time.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, args=(server,), daemon=True).start()
        keys = VaultKeyService(f"https://127.0.0.1:{server.getsockname()[1]}", {"VAULT_TOKEN": "t"})
        began = time.monotonic()
        with pytest.raises(KeyUnavailable, match="no key"):
            keys.unwrap("a", "b")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "document",
    [
        b"", b"{", b"[" * 100_000, b"null", b"[]", b'"x"', b"\xff", b'{"a":{"mappings":5}}', b"{}",
        b'{"data":{"plaintext":5}}', b'{"data":[]}', b'{"data":{"plaintext":"no base64!"}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("ask", [of_opensearch, of_keys], ids=["opensearch", "keys"])
def test_an_answer_of_another_form_is_one_error(ask, document):
    with serving(json_answer(document)) as server, pytest.raises(SkippingError) as raised:
        ask(server)
    assert "t0ken" not in str(raised.value)


def test_a_job_asks_no_server_of_its_own_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(json_answer({})) as server:
        monkeypatch.setenv(ALLOW_VARIABLE, "{}")
        with pytest.raises(IndexNotPossible, match="connected to") as raised:
            of_opensearch(server)
        assert "allow.endpoints" in str(raised.value)
        with pytest.raises(KeyUnavailable):
            VaultKeyService(server.url, {**JOB, "VAULT_TOKEN": "t0ken"}).unwrap("a", "b")
        monkeypatch.setenv(ALLOW_VARIABLE, json.dumps({"endpoints": [f"127.0.0.1:{server.port}"]}))
        with pytest.raises(SkippingError):
            of_opensearch(server)
        assert len(server.requests) == 1


def test_a_name_that_leads_to_the_pod_is_refused_without_another_try(monkeypatch):
    asked = resolving(monkeypatch, ["127.0.0.1"])
    monkeypatch.setenv(ALLOW_VARIABLE, "{}")
    base = open_opensearch_base("opensearch://innocent.example:9200", None)
    with pytest.raises(IndexNotPossible):
        base.index("file:/data/t").read()
    assert asked == ["innocent.example"]


@pytest.mark.parametrize("host", ["169.254.169.254", "metadata.google.internal", "[fe80::1]"])
def test_no_setting_leads_to_a_metadata_service(host: str) -> None:
    with pytest.raises((IndexNotPossible, SkippingError)):
        open_opensearch_base(f"opensearch://{host}:80", None)
    with pytest.raises(KeyUnavailable):
        VaultKeyService(f"http://{host}/v1", {})
    settings = lineage_settings({"SNAPLOOM_LINEAGE_URL": f"http://{host}/"})
    assert settings is not None
    with pytest.raises(EndpointRefused):
        listener.open_transport(settings).session.post(  # type: ignore[attr-defined]
            f"http://{host}/", data="{}", timeout=2
        )


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://h/", "http://u:p@h/", "http://", "gopher://h", "http://h:x"],
)
def test_only_plain_addresses_of_http_are_asked(url: str) -> None:
    with pytest.raises(EndpointRefused):
        origin_of(url)


# Answers of a document server.


def a_page(*hits: object) -> object:
    return {
        "hits": {"hits": list(hits)},
        "_shards": {"failed": 0},
        "pit_id": "m",
        "timed_out": False,
    }


def a_hit(number: int, **own: object) -> object:
    row = {"path": f"f{number}", "length": 1, "modified": 1, "segment": "rows-1", **own}
    return {"_id": str(number), "_source": {"_snaploom": row}, "sort": [number]}


@pytest.mark.parametrize(
    "hits",
    [
        [a_hit(number) for number in range(100)],
        [{"_id": "1", "_source": 5, "sort": [1]}],
        [{"_id": 5}],
        [None],
        [a_hit(1, path=5)],
        [a_hit(1, path=None)],
        [a_hit(1, length="x"), a_hit(2)],
        [a_hit(1, length=None), a_hit(2)],
        [a_hit(1, length=10**30), a_hit(2)],
        [{"_id": "1", "_source": {"_snaploom": []}, "sort": [1]}],
    ],
)
def test_documents_of_another_form_leave_the_index_unused(hits: list[object]) -> None:
    shards = {"x": {"settings": {"index": {"number_of_shards": "1"}}}}
    with serving(json_answer({**shards, **a_page(*hits)})) as server:  # type: ignore[dict-item]
        options = replace(options_of(server.port), scroll_size=100)
        client = OpenSearchClient(options)
        with while_somebody_waits(), client, pytest.raises(SkippingError):
            DocumentReader(client, "x", Segment("rows-1", 2, 0), a_definition())
        assert len(server.requests) < 10


@pytest.mark.parametrize("shards", ["1000000000", "0", "-1", "x", None, [], "9" * 5000])
def test_a_number_of_shards_that_no_index_has_is_refused(shards: object) -> None:
    document = {"x": {"settings": {"index": {"number_of_shards": shards}}}}
    with serving(json_answer(document)) as server:
        client = OpenSearchClient(options_of(server.port))
        with while_somebody_waits(), client, pytest.raises(SkippingError):
            client.shards("x")


def test_removed_paths_end_with_the_first_document_that_is_not_there() -> None:
    with serving(json_answer({"found": False}, 404)) as server:
        with while_somebody_waits(), OpenSearchClient(options_of(server.port)) as client:
            store = OpenSearchIndexStore(client, "flint_t_skipping_index")
            segment = Segment("gone-1", 1 << 40, 0, removed=True)
            with pytest.raises(SkippingError):
                store._parts([segment], a_definition())
        assert len(server.requests) == 1


def a_declared_index(host: str) -> dict[str, object]:
    return {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "SkippingIndex",
        "metadata": {"name": "i"},
        "spec": {
            "target": {"path": {"uri": "/data/t", "format": "parquet"}},
            "indexes": [{"type": "MIN_MAX", "column": "a"}],
            "store": {"openSearch": {"host": host}},
        },
    }


@pytest.mark.parametrize(
    ("host", "entries", "code"),
    [
        ("169.254.169.254", [], "SL190"),
        ("metadata.google.internal", ["*"], "SL190"),
        ("elsewhere", ["search"], "SL190"),
        ("search", ["search:9200"], None),
        ("10.0.0.7", [], None),
    ],
)
def test_a_declared_server_is_judged_by_validation(host, entries, code):
    resource = SkippingIndex.parse(a_declared_index(host))
    found = validate([resource], allow=Allowances(endpoints=tuple(entries)))
    assert [finding.code for finding in found] == ([] if code is None else [code])


@pytest.mark.parametrize(
    "host", ["evil:443?scheme=http&x=", "user@evil", "evil/path", "evil#", "evil?auth=basic", "a b"]
)
def test_a_host_is_no_part_of_a_uri(host: str) -> None:
    with pytest.raises(ValidationError):
        SkippingIndex.parse(a_declared_index(host))


PLACES: dict[str, Callable[[str], Raw]] = {
    "source": lambda uri: files("a", sourceUriGlobs=[f"{uri}x/*.parquet"]),
    "folder": lambda uri: output(**{"outputFolder.folderUri": uri}),
    "checkpoints": lambda uri: output(run={"checkpointUri": uri}),
    "index": lambda uri: a_native_index(uri),
}


def a_native_index(location: str) -> Raw:
    spec = {
        "target": {"dataSource": "a"},
        "indexes": [{"type": "MIN_MAX", "column": "x"}],
        "store": {"parquet": {"location": location}},
    }
    return document("SkippingIndex", "i", spec)


def refused_places(field: str, uri: str) -> list[str]:
    found = validate(parsed([PLACES[field](uri)]))
    return [finding.path for finding in found if finding.code == "SL190"]


@pytest.mark.parametrize("field", PLACES)
@pytest.mark.parametrize(
    "uri",
    [
        "webhdfs://169.254.169.254:80/", "hdfs://169.254.169.254/", "HDFS://2852039166:8020/",
        "abfss://c@169.254.169.254./", "hdfs://[fd00:ec2::254]:80/", "http://100.100.100.200/",
        "ftp://user@metadata.google.internal:21/", "hdfs://good:8020,0xa9fea9fe:80/",
        "swebhdfs://[::ffff:169.254.169.254]/", "hdfs://0.0.0.0:8020/",
        "abfss://c@elsewhere.example/", "wasbs://c@a.core.windows.net.example/", "abfs://c@b/",
    ],
)  # fmt: skip
def test_uris_of_files_to_forbidden_hosts_are_refused(field: str, uri: str) -> None:
    assert len(refused_places(field, uri)) == 1


@pytest.mark.parametrize("field", PLACES)
@pytest.mark.parametrize(
    "uri",
    [
        "hdfs://name-node:8020/", "hdfs://10.0.0.7:8020/", "s3://169.254.169.254/", "file:///a/",
        "abfss://c@account.dfs.core.windows.net/", "gs://metadata/", "hdfs://metadata/", "/a/",
        "hdfs://[fd12::7]:8020/", "viewfs://cluster/",
    ],
)  # fmt: skip
def test_places_of_files_stay_legal(field: str, uri: str) -> None:
    assert refused_places(field, uri) == []


def test_an_administrator_names_other_hosts_of_azure() -> None:
    source = parsed([files("a", sourceUriGlobs=["abfss://c@files.example/x/*.parquet"])])
    assert [finding.code for finding in validate(source)] == ["SL190"]
    assert validate(source, allow=Allowances(endpoints=("files.example",))) == ()
