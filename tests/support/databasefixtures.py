"""Fixtures of databases; each is started when a test first asks for it."""

from collections.abc import Iterator

import pytest
from support.postgresserver import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL, which refuses who does not know the password."""
    with running_postgres() as server:
        yield server
