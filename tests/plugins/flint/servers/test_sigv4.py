"""Signed requests to a real OpenSearch, admitted by a server that verifies each signature."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.servers.awssignature import Account
from support.servers.certificates import Authority
from support.servers.guardedproxy import guarded_proxy
from support.skipping.fakeopensearch import a_definition, options_of, price_rows, unused_name

from snaploom.errors import IndexNotPossible
from snaploom.plugins.flint.client import IndexStoreFailed, OpenSearchClient
from snaploom.plugins.flint.documents import read_hits
from snaploom.plugins.flint.options import Auth, RefreshPolicy
from snaploom.plugins.flint.segments import Action, Write, write_all
from snaploom.plugins.flint.store import OpenSearchIndexStore

pytestmark = pytest.mark.long
BOTOCORE = Path(sys.prefix, "sigv4")
"""Where `.ci/environment` puts it."""

SECRET = "s3cr3t/of+an/account"
ES = Account("AKIDTEST", SECRET, "eu-central-1", "es")
SERVERLESS = Account("AKIDOTHER", SECRET, "us-east-1", "aoss", token="a/session+token==")


@pytest.fixture(autouse=True)
def botocore(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """botocore, and no credentials of the machine itself."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BOTOCORE))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "botocore":
            del sys.modules[name]


def sign_in(monkeypatch: pytest.MonkeyPatch, account: Account) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", account.key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", account.secret)
    if account.token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", account.token)


def client_of(port: int, account: Account, **changes: object) -> OpenSearchClient:
    signed = {"auth": Auth.SIGV4, "region": account.region, "service": account.service}
    return OpenSearchClient(replace(options_of(port), **{**signed, **changes}))  # type: ignore[arg-type]


@pytest.mark.parametrize("account", [ES, SERVERLESS])
def test_every_request_of_a_store_is_signed_rightly(real_port, account, monkeypatch):
    sign_in(monkeypatch, account)
    with (
        guarded_proxy(real_port, account.refuse) as port,
        client_of(port, account, scroll_size=3) as client,
    ):
        store = OpenSearchIndexStore(client, unused_name())
        rows = price_rows({f"file:/data/ä b/{n}+%2F.parquet": (n, n + 1) for n in range(10)})
        segments = tuple(store.write_rows([rows], a_definition()))
        state = store.commit(
            lambda before: replace(before, definition=a_definition(), segments=segments)
        )
        assert store.read() == state
        assert sorted(store.open(state).column("path").to_pylist()) == rows["path"].to_pylist()
        store.destroy()


def test_names_that_are_encoded_are_signed_as_they_are_sent(real_port, monkeypatch):
    sign_in(monkeypatch, ES)
    name, odd = unused_name(), "a/b+c ä%?~*=&'"
    with guarded_proxy(real_port, ES.refuse) as port, client_of(port, ES) as client:
        writes = [Write(Action.INDEX, {"n": 1}, odd)]
        assert list(write_all(client, name, writes, RefreshPolicy.WAIT_UNTIL)) == []
        assert client.put(name, odd, {"n": 2}, client.get(name, odd))
        assert [hit.source for hit in read_hits(client, name)] in ([{"n": 1}], [{"n": 2}])


def test_requests_are_signed_through_https(real_port, monkeypatch, tmp_path):
    sign_in(monkeypatch, ES)
    authority = Authority(tmp_path, "ours")
    secured = {"scheme": "https", "ca_file": str(authority.certificate)}
    with (
        guarded_proxy(real_port, ES.refuse, authority.issue("127.0.0.1")) as port,
        client_of(port, ES, **secured) as client,
    ):
        assert not client.exists("absent")


@pytest.mark.parametrize(
    "other",
    [
        replace(ES, secret="another"),
        replace(ES, region="eu-central-2"),
        replace(ES, service="aoss"),
        replace(ES, token="another"),
    ],
)
def test_what_is_signed_otherwise_is_refused(real_port, other, monkeypatch):
    sign_in(monkeypatch, other)
    with (
        guarded_proxy(real_port, ES.refuse) as port,
        client_of(port, other) as client,
        pytest.raises(IndexStoreFailed, match="403") as refused,
    ):
        client.get("t", "one")
    assert "the user and its rights" in str(refused.value)
    assert other.secret not in str(refused.value)


def test_missing_credentials_are_an_error_with_their_variables(real_port: int) -> None:
    with pytest.raises(IndexNotPossible, match="AWS_ACCESS_KEY_ID"):
        client_of(real_port, ES)
