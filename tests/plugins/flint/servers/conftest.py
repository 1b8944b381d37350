"""One suite over the real OpenSearch and the fake."""

from collections.abc import Iterator

import pytest
from support.servers.opensearchserver import running_opensearch
from support.skipping.fakeopensearch import FakeOpenSearch, options_of, serving, unused_name

from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.store import OpenSearchIndexStore


@pytest.fixture(scope="session")
def real_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running_opensearch(tmp_path_factory.mktemp("opensearch")) as port:
        yield port


@pytest.fixture(scope="session")
def fake_port() -> Iterator[int]:
    with serving(FakeOpenSearch()) as port:
        yield port


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
