"""Secrets are found at any place and never shown; ordinary data is not taken for one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import (
    document,
    files,
    key,
    output,
    parsed,
    put,
    relationship,
    simple,
)
from support.declared.sources import INDEX, a_source

from snaploom.models.findings import Finding
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.run import RunAction
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import SecretKey, bundle_for, secret_keys
from snaploom.policy.secretdetection import names_a_secret, secret_findings, secret_form
from snaploom.skipping.stores.folder import uri_of_store

CANARY = "c4nary-hunter2"
AWS = "AKIAIOSFODNN7EXAMPLE"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE"
PLACES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "option of a format": (
        files("s"), "spec.hdfsLike.formatOptions", {"fs.s3a.secret.key": CANARY}
    ),
    "place of files": (
        files("s"), "spec.hdfsLike.sourceUriGlobs", [f"sftp://me:{CANARY}@host/data/*.csv"]
    ),
    "signed place": (
        files("s"), "spec.hdfsLike.sourceUriGlobs", [f"https://host/a.csv?sv=1&sig={CANARY}"]
    ),
    "metadata of a field": (
        files("s"),
        "spec.hdfsLike.schemaFields",
        [{"name": "a", "dataType": {"string": {}}, "metadata": {"password": CANARY}}],
    ),
    "query": (simple("s", "SELECT 1"), "spec.simpleVirtual.dataQuery", f"SELECT '{JWT}' FROM c"),
    "label": (files("s"), "metadata.labels", {"note": AWS}),
    "annotation": (files("s"), "metadata.annotations", {"a.example/key": PEM}),
    "key of a relationship": (
        relationship("s", (["a", "b"], [key("x")])),
        "spec.representations.0.joinKey.0.query",
        f"concat(x, '{AWS}')",
    ),
    "folder of an output": (output("s"), "spec.outputFolder.folderUri", f"s3a://me:{CANARY}@b/out/"),
    "setting of Spark": (
        output("s"),
        "spec.run.spark",
        {"sparkConf": {"spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": CANARY}},
    ),
    "variable of a pod": (
        output("s"),
        "spec.run.spark",
        {"podTemplate": {"env": [{"name": "DB_PASSWORD", "value": CANARY}]}},
    ),
}  # fmt: skip


def found_in(raw: dict[str, Any], path: str, value: Any) -> tuple[Finding, ...]:
    put(raw, path, value)
    return secret_findings(KIND_BY_NAME[raw["kind"]].model.parse(raw))


@pytest.mark.parametrize("place", PLACES)
def test_secret_is_seen_wherever_it_stands_and_never_shown(place: str) -> None:
    raw, path, value = PLACES[place]
    (found,) = found_in(raw, path, value)
    parent = path.rpartition(".")[0] if path[-1].isdigit() else path
    assert found.path.replace("[", ".").replace("]", "").startswith(parent)
    assert found.code == "SL138"
    assert not any(secret in str(found.dump()) for secret in (CANARY, AWS, JWT, PEM))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", CANARY),
        ("javax.jdo.option.ConnectionPassword", CANARY),
        ("spark.ssl.keyStorePassword", "changeit"),
        ("fs.s3a.access.key", CANARY),
        ("secretKey", CANARY),
        ("API_KEY", CANARY),
        ("auth-token", CANARY),
        ("parquet.encryption.key.list", "k:AAEC"),
        ("spark.authenticate.secret", CANARY),
    ],
)
def test_names_of_settings_mark_secrets(name: str, value: str) -> None:
    assert names_a_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", ""),
        ("password", "${DB_PASSWORD}"),
        ("secret", "true"),
        ("fs.s3a.aws.credentials.provider", "com.example.Provider"),
        ("hadoop.security.credential.provider.path", "jceks://hdfs/x"),
        ("maxTokens", "many"),
        ("tokenizer", "whitespace"),
        ("primaryKey", "id"),
        ("sort.key", "a,b"),
        ("keyLabel", "prices"),
        ("passenger", "x1"),
        ("header", "true"),
    ],
)
def test_ordinary_settings_are_none(name: str, value: str) -> None:
    assert not names_a_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("secret", "restricted"),
        ("token", "customer-token-v2"),
        ("password", "hashed"),
        ("credential", "card1234"),
        ("comment", "the password of the customer, salted"),
        ("key", "primary"),
    ],
)
def test_descriptions_may_speak_of_secrets(name: str, value: str) -> None:
    assert not names_a_secret(name, value, is_description=True)
    assert not secret_form(value)


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/data",
        "https://host:8443/path?version=2&format=csv",
        "s3a://bucket/year=2020/*.parquet",
        "SELECT 'a:b@c' AS x, concat('//', y, ':', z, '@') FROM c",
        "https://${USER}:${PASSWORD}@host/",
        "eyJust.a.word",
        "user@example.org",
    ],
)
def test_ordinary_texts_have_no_secret(text: str) -> None:
    assert secret_form(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        f"eyJ{'a' * 12}.eyJ{'b' * 12}.{'c' * 12}",
        f"AKIA{'A' * 16}",
        f"ASIA{'A' * 16}",
        f"AIza{'a' * 35}",
        *(f"gh{letter}_{'a' * 36}" for letter in "pousr"),
        f"github_pat_{'a' * 40}",
        f"glpat-{'a' * 20}",
        *(f"xox{letter}-{'a' * 10}" for letter in "abprs"),
        f"AccountKey={'a' * 40}",
        "JDBC:postgresql://user:pw@db/x",
        "https://user:pw@host/x",
        "s3a://bucket/x?signature=abc",
    ],
)
def test_every_form_of_a_secret_is_recognised_inside_a_text(text: str) -> None:
    assert secret_form(text)
    assert text.startswith("JDBC:") or secret_form(f"before {text} behind")


@pytest.mark.parametrize(
    "piece", ["://", "://a:b", "eyJ-", "eyJaaaaaaaaaaa.", "a@", "AKIA", "?token=", "-----BEGIN A "]
)
def test_time_stays_in_proportion_to_the_text(piece: str) -> None:
    begun = time.perf_counter()
    secret_form(piece * (8192 // len(piece)))
    assert time.perf_counter() - begun < 0.25


def test_ordinary_documents_have_none() -> None:
    selectors = [{"coordinateIncludeRegex": "x"}]
    applicator = {"fieldSelectors": selectors, "metadata": {"pii": "no", "secret": "yes"}}
    raws = [
        files("a"),
        simple("b", "SELECT 1 FROM c"),
        output("c"),
        document("MetadataApplicator", "d", applicator),
    ]
    resources = [KIND_BY_NAME[raw["kind"]].model.parse(raw) for raw in raws]
    assert [finding for resource in resources for finding in secret_findings(resource)] == []


@pytest.mark.parametrize(
    "url",
    [
        "s3a://key:a/b@bucket", "s3a://AKIA:wJalr/XUtn/FEMI@bucket/out/", "s3a://key:a?b@bucket",
        "https://me:p#w@host/x",
    ],
)  # fmt: skip
def test_password_with_a_slash_is_seen(url: str) -> None:
    assert secret_form(f"files at {url}") == "a password in a URL"


@pytest.mark.parametrize(
    "url",
    [
        "s3a://bucket/mail/me@example.com", "hdfs://nn:8020/a@b", "hdfs://a:8020,b:8020/x@y",
        "https://[fd12::7]:9200/@scope", "https://host:port/path@v1", "https://host:/a@b",
        "abfss://container@account.dfs.core.windows.net/a:b@c", "s3a://${USER}:${KEY}/x@bucket",
        "s3a://{bucket:string}/x@y", "https://host/a:b@c",
    ],
)  # fmt: skip
def test_sign_in_a_path_is_no_password(url: str) -> None:
    assert not secret_form(url)


TABLE = {
    "driver": "POSTGRESQL", "host": "db", "database": "d", "tableReference": "t",
    "snapshot": {"fromReadTime": {}},
}  # fmt: skip


def table(name: str, **credentials: Any) -> Any:
    return a_source({"jdbc": TABLE | {"credentials": credentials}}, name)


def test_every_key_of_a_run_is_there_once() -> None:
    sources = (
        table("a", fromSecret={"name": "one"}),
        table("b", fromSecret={"name": "one", "userKey": "login"}),
        table("c", fromEnvironment={"userVariable": "U", "passwordVariable": "P"}),
    )
    bundle = Bundle(skipping_index=INDEX, data_sources=sources)
    keys = secret_keys(bundle)
    assert [(key.secret, key.key) for key in keys] == [
        ("one", "login"),
        ("one", "password"),
        ("one", "username"),
    ]
    assert secret_keys(bundle, RunAction.DELETE) == ()


def test_opensearch_is_reached_with_the_same_keys() -> None:
    credentials = {"fromSecret": {"name": "search", "userKey": "u", "passwordKey": "p"}}
    spec = {
        "target": {"path": {"uri": "/data", "format": "parquet"}},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"openSearch": {"host": "s", "auth": "BASIC", "credentials": credentials}},
    }
    index = parsed([document("SkippingIndex", "i", spec)])
    bundle = bundle_for("SkippingIndex", "i", index)
    assert bundle.skipping_index is not None
    store = bundle.skipping_index.spec.store.open_search
    assert store is not None
    password, user = (key.variable for key in secret_keys(bundle))
    assert uri_of_store(store).endswith(f"username_variable={user}&password_variable={password}")


@given(st.sets(st.tuples(st.text(), st.text()), max_size=20))
def test_names_are_variables_and_differ(keys: set[tuple[str, str]]) -> None:
    names = {SecretKey(secret, key).variable for secret, key in keys if "/" not in secret}
    assert all(name.isidentifier() and name.isascii() for name in names)
    assert len(names) == len([secret for secret, _ in keys if "/" not in secret])
