"""One suite over the real OpenSearch and the fake."""

from collections.abc import Iterator

import pytest
from support.skipping.fakeopensearch import fake_port, options_of, real_port, unused_name

from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.store import OpenSearchIndexStore

__all__ = ["fake_port", "real_port"]  # fixtures


@pytest.fixture(params=["fake", "real"])
def port(request: pytest.FixtureRequest) -> int:
    return int(request.getfixturevalue(f"{request.param}_port"))


@pytest.fixture
def client(port: int) -> Iterator[OpenSearchClient]:
    with OpenSearchClient(options_of(port)) as client:
        yield client


@pytest.fixture
def index_store(client: OpenSearchClient) -> OpenSearchIndexStore:
    return OpenSearchIndexStore(client, unused_name())
