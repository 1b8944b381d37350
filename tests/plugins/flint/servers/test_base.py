from dataclasses import replace

import pytest
from support.skipping.fakeopensearch import a_definition, price_rows

from snaploom.errors import StatementInvalid
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.metadata import index_name
from snaploom.plugins.flint.store import OpenSearchBase, open_opensearch_base
from snaploom.skipping.core.definition import Target


@pytest.fixture
def base(port: int) -> OpenSearchBase:
    return open_opensearch_base(f"opensearch://127.0.0.1:{port}", None)


def test_indexes_have_flints_name_and_are_found_by_their_target(
    base: OpenSearchBase, client: OpenSearchClient
) -> None:
    target = Target("file:/data/named", table="spark_catalog.shop.named", format="parquet")
    definition = replace(a_definition(), target=target)
    store = base.index(target.uri)
    segments = store.write_rows([price_rows({"file:/data/named/a": (1, 2)})], definition)
    state = store.commit(
        lambda before: replace(before, definition=definition, segments=tuple(segments))
    )
    assert client.exists(index_name(target.table))
    again = base.index(target.uri)
    assert again.read() == state
    assert again.open(state).column("path").to_pylist() == ["file:/data/named/a"]
    assert store.uri in [one.uri for one in base.indexes()]
    assert base.index("file:/data/other").read().version == 0
    base.index(target.uri).destroy()
    assert not client.exists(index_name(target.table))


@pytest.mark.parametrize(
    "uri",
    [
        "opensearch://user:secret@host:9200",
        "opensearch://host/path",
        "opensearch://",
        "opensearch://host?form=OLD",
        "opensearch://host?hots=x",
    ],
)
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(StatementInvalid) as caught:
        open_opensearch_base(uri, None)
    assert "secret" not in str(caught.value)
