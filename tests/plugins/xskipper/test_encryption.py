"""Encryption by key labels: what opens a file, what does not, and what is never shown."""

import secrets
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.servers.keyservices import ELSEWHERE, MemoryKeyService, transit_server
from support.skipping.xskipperfiles import a_definition, index_of, some_rows

from snaploom.errors import IndexNotPossible, IndexUnreadable, KeyUnavailable
from snaploom.files.local import LocalObjectStore
from snaploom.plugins.vault import VaultKeyService
from snaploom.plugins.xskipper.layout import column_keys, parse_column_keys
from snaploom.plugins.xskipper.storefiles import XskipperDirectory
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.formats.parquetfiles import ParquetKeys, open_keys

LABELS = ("footer", "columns", "other")


@pytest.fixture
def service() -> MemoryKeyService:
    return MemoryKeyService({label: secrets.token_bytes(16) for label in LABELS})


def encrypted(plaintext_footer: bool = False) -> SkippingDefinition:
    indexes = (index_of("i1", "MIN_MAX", "price", "int", key_label="columns"),)
    return replace(
        a_definition(*indexes), footer_key_label="footer", plaintext_footer=plaintext_footer
    )


def written(folder: Path, definition: SkippingDefinition, service: MemoryKeyService) -> bytes:
    store = LocalObjectStore(folder, create=True)
    XskipperDirectory(store, ParquetKeys(service)).write([some_rows()], definition)
    (part,) = folder.glob("*.parquet")
    return part.read_bytes()


def read(folder: Path, service: MemoryKeyService | None) -> pa.Table:
    keys = None if service is None else ParquetKeys(service)
    return XskipperDirectory(LocalObjectStore(folder, create=False), keys).read().rows


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_store_reads_with_its_keys_only(tmp_path, service, plaintext_footer):
    data = written(tmp_path, encrypted(plaintext_footer), service)
    assert data[:4] == (b"PAR1" if plaintext_footer else b"PARE")
    assert read(tmp_path, service)["0.max"].to_pylist() == [9, None]
    with pytest.raises(KeyUnavailable):
        read(tmp_path, None)


def test_store_with_another_master_key_is_refused(tmp_path, service):
    written(tmp_path, encrypted(), service)
    other = MemoryKeyService(dict.fromkeys(LABELS, secrets.token_bytes(16)))
    with pytest.raises(KeyUnavailable):
        read(tmp_path, other)


def test_store_without_one_of_its_labels_is_refused(tmp_path, service):
    written(tmp_path, encrypted(), service)
    with pytest.raises(KeyUnavailable, match="columns"):
        read(tmp_path, MemoryKeyService({"footer": service.keys["footer"]}))


def test_label_that_the_service_lacks_is_refused_and_nothing_is_written(tmp_path, service):
    del service.keys["columns"]
    with pytest.raises(KeyUnavailable):
        written(tmp_path, encrypted(), service)
    assert list(tmp_path.glob("*.parquet")) == []


def test_no_key_material_is_in_the_file(tmp_path: Path, service: MemoryKeyService) -> None:
    data = written(tmp_path, encrypted(plaintext_footer=True), service)
    assert b"footer" in data
    assert not any(key in data or key.hex().encode() in data for key in service.keys.values())


def test_index_key_needs_a_footer_key(tmp_path: Path, service: MemoryKeyService) -> None:
    with pytest.raises(IndexNotPossible, match="both or neither"):
        written(tmp_path, replace(encrypted(), footer_key_label=""), service)


def test_key_list_cannot_hold_a_label_with_a_colon(tmp_path, service):
    with pytest.raises(IndexNotPossible, match="a:b"):
        written(tmp_path, replace(encrypted(), footer_key_label="a:b"), service)


def test_service_is_asked_once_for_each_label(tmp_path: Path, service: MemoryKeyService) -> None:
    written(tmp_path, encrypted(), service)
    service.asked.clear()
    read(tmp_path, service)
    assert sorted(service.asked) == ["unwrap columns", "unwrap footer"]


@pytest.mark.parametrize("with_length", [False, True])
def test_wrapped_key_with_or_without_its_length_opens(with_length: bool) -> None:
    service = MemoryKeyService({"a": secrets.token_bytes(16)}, with_length)
    assert service.unwrap("a", service.wrap("a", b"0123456789abcdef")) == b"0123456789abcdef"


names = st.text(st.characters(exclude_characters=":;,", exclude_categories=["Cs"]), min_size=1)
plain = names.filter(lambda text: text == text.strip())


@settings(deadline=None, max_examples=examples(60))
@given(st.dictionaries(plain, st.lists(plain, min_size=1).map(tuple), max_size=4))
def test_column_key_list_survives_the_round_trip(keys: dict[str, tuple[str, ...]]) -> None:
    assert parse_column_keys(column_keys(keys)) == keys


@pytest.mark.parametrize("text", ["a", "a:", ":b", "a:b:c"])
def test_column_key_list_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(IndexUnreadable):
        parse_column_keys(text)


def test_vault_wraps_and_unwraps_over_http(tmp_path: Path, service: MemoryKeyService) -> None:
    with transit_server(service) as server:
        vault = VaultKeyService(server.url, {"VAULT_TOKEN": server.token})
        assert vault.unwrap("columns", vault.wrap("columns", b"secret-data-key!")) == (
            b"secret-data-key!"
        )
        assert server.requests == ["/v1/transit/encrypt/columns", "/v1/transit/decrypt/columns"]


def test_store_is_written_and_read_with_keys_from_vault(tmp_path, service, monkeypatch):
    token = tmp_path / "token"
    monkeypatch.setenv("VAULT_TOKEN_FILE", str(token))
    store = LocalObjectStore(tmp_path / "md", create=True)
    with transit_server(service) as server:
        token.write_text(server.token + "\n")
        XskipperDirectory(store, open_keys(f"vault+{server.url}")).write([some_rows()], encrypted())
        directory = XskipperDirectory(store, open_keys(f"vault+{server.url}"))
        assert directory.read().rows.num_rows == 2


@pytest.mark.parametrize("label", ["columns", "absent"])
def test_refusal_of_vault_is_reported_without_secrets(service, label):
    with transit_server(service) as server:
        token = server.token if label == "absent" else "wrong-token-of-mine"
        vault = VaultKeyService(server.url, {"VAULT_TOKEN": token})
        with pytest.raises(KeyUnavailable) as raised:
            vault.wrap(label, b"secret-data-key!")
    text = f"{raised.value} {raised.value.__cause__} {raised.value.__suppress_context__}"
    assert "HTTP status 40" in text
    assert token not in text
    assert "c2VjcmV0LWRhdGEta2V5IQ" not in text


def test_vault_s_redirects_are_not_followed_with_the_token(service: MemoryKeyService) -> None:
    with transit_server(service) as server:
        vault = VaultKeyService(server.url, {"VAULT_TOKEN": server.token})
        with pytest.raises(KeyUnavailable, match="HTTP status 307"):
            vault.wrap(ELSEWHERE, b"secret-data-key!")
    assert len(server.requests) == 1


def test_unreachable_vault_is_reported(service: MemoryKeyService) -> None:
    with transit_server(service) as server:
        url = server.url
    with pytest.raises(KeyUnavailable, match="no answer"):
        VaultKeyService(url, {"VAULT_TOKEN": "t"}).unwrap("a", "b")


def test_vault_without_a_token_is_refused_before_it_is_asked() -> None:
    with pytest.raises(KeyUnavailable, match="no token"):
        VaultKeyService("https://localhost/v1/transit", {}).unwrap("a", "b")


def test_setting_that_names_no_service_is_refused() -> None:
    assert open_keys("") is None
    with pytest.raises(KeyUnavailable, match=r"vault\+URL"):
        open_keys("cloud+https://localhost")
