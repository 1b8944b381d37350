"""Keys of Secrets as variables: every one that a run needs, each under a name of its own."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import document, parsed
from support.declared.sources import INDEX, a_source

from snaploom.models.run import RunAction
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import SecretKey, bundle_for, secret_keys
from snaploom.skipping.stores.folder import uri_of_store

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
