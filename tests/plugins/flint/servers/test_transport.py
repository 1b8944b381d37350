"""A real OpenSearch behind https: trusted certificates, authenticated users, and errors."""

import base64
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.servers.certificates import Authority
from support.servers.guardedproxy import Request, guarded_proxy
from support.skipping.fakeopensearch import unused_name

from snaploom.errors import IndexNotPossible
from snaploom.plugins.flint.client import IndexStoreFailed, OpenSearchClient
from snaploom.plugins.flint.documents import read_hits
from snaploom.plugins.flint.options import Auth, OpenSearchOptions, RefreshPolicy
from snaploom.plugins.flint.segments import Action, Write, write_all

USER, PASSWORD = "weaver", "s3cr3t:ä"
CREDENTIALS = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def anyone(request: Request) -> str:
    return ""


def members(request: Request) -> str:
    right = request.headers.get("authorization") == f"Basic {CREDENTIALS}"
    return "" if right else "Unauthorized"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def secure_port(real_port: int, authority: Authority) -> Iterator[int]:
    with guarded_proxy(real_port, members, authority.issue("localhost"), refusal=401) as port:
        yield port


def options(port: int, authority: Authority, **changes: object) -> OpenSearchOptions:
    secured = {"host": "localhost", "port": port, "scheme": "https"}
    user = {"auth": Auth.BASIC, "username": USER, "password": PASSWORD}
    trusted = {"ca_file": str(authority.certificate)}
    return OpenSearchOptions(**{**secured, **user, **trusted, **changes})  # type: ignore[arg-type]


def refusal(options: OpenSearchOptions) -> str:
    """The one error of a client, which has no secret."""
    with pytest.raises(IndexStoreFailed) as caught, OpenSearchClient(options) as client:
        client.exists("t")
    error = f"{caught.value} {caught.value.__cause__}"
    assert PASSWORD not in error
    assert CREDENTIALS not in error
    return error


def test_documents_pass_by_https_with_a_user(secure_port: int, authority: Authority) -> None:
    name = unused_name()
    with OpenSearchClient(options(secure_port, authority)) as client:
        writes = [Write(Action.INDEX, {"n": n}, f"a/b {n}+ä%?") for n in range(30)]
        assert list(write_all(client, name, writes, RefreshPolicy.IMMEDIATE)) == []
        assert sorted(hit.source["n"] for hit in read_hits(client, name)) == list(range(30))
        found = client.get(name, "a/b 7+ä%?")
        assert found.source == {"n": 7}


def test_the_environments_authorities_are_trusted(secure_port, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    with OpenSearchClient(options(secure_port, authority, ca_file="")) as client:
        assert not client.exists("absent")


def test_a_wrong_password_is_an_error_with_a_fix(secure_port: int, authority: Authority) -> None:
    error = refusal(options(secure_port, authority, password="wrong"))
    assert "401" in error
    assert "the user and its rights" in error


def test_another_authority_is_not_trusted(secure_port, authority, tmp_path):
    error = refusal(options(secure_port, Authority(tmp_path, "theirs")))
    assert "its certificate is refused" in error
    assert "ca_file" in error
    assert "its certificate is refused" in refusal(options(secure_port, authority, ca_file=""))


@pytest.mark.parametrize(
    ("host", "expired", "words"),
    [("localhost", True, "expired"), ("elsewhere.example", False, "not valid for 'localhost'")],
)
def test_a_certificate_that_is_not_good_is_refused(real_port, authority, host, expired, words):
    issued = authority.issue(host, expired=expired)
    with guarded_proxy(real_port, anyone, issued) as port:
        assert words in refusal(options(port, authority))


def test_a_server_without_tls_is_an_error(real_port: int, authority: Authority) -> None:
    assert "scheme=http " in refusal(options(real_port, authority, host="127.0.0.1"))


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_authorities_that_cannot_be_read_are_refused(authority, tmp_path, content):
    file = tmp_path / "authority.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(IndexNotPossible, match=r"authority\.pem"):
        OpenSearchClient(options(443, authority, ca_file=str(file)))


def test_the_command_line_prints_one_error(secure_port, authority, tmp_path):
    location = f"opensearch://localhost:{secure_port}?scheme=https&auth=basic"
    command = [sys.executable, "-m", "snaploom.cli.main", "index", "list", location]
    user = {"SNAPLOOM_OPENSEARCH_USERNAME": USER, "SNAPLOOM_OPENSEARCH_PASSWORD": PASSWORD}
    found = subprocess.run(
        command, env=os.environ | user, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    printed = " ".join((found.stdout + found.stderr).split())
    assert found.returncode == 1
    assert "its certificate is refused" in printed
    assert "Traceback" not in printed
    assert PASSWORD not in printed
