from collections.abc import Iterator

import pytest
from support.skipping.fakeopensearch import FakeOpenSearch, options_of, serving

from snaploom.plugins.flint import client as failures
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.options import OpenSearchOptions


@pytest.fixture
def fake() -> FakeOpenSearch:
    return FakeOpenSearch()


@pytest.fixture
def fake_options(fake: FakeOpenSearch) -> Iterator[OpenSearchOptions]:
    with serving(fake) as port:
        yield options_of(port)


@pytest.fixture
def client(
    fake_options: OpenSearchOptions, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenSearchClient]:
    monkeypatch.setattr(failures, "FIRST_PAUSE", 0.001)
    with OpenSearchClient(fake_options) as client:
        yield client
