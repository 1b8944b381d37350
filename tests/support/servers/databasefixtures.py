"""Fixtures of databases; each is started when a test first asks for it."""

from collections.abc import Iterator

import pytest
from support.servers.mariadbserver import MariaDb, running_mariadb
from support.servers.postgresserver import Postgres, running_postgres


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """A real MariaDB, which speaks MySQL's protocol."""
    with running_mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL with a password."""
    with running_postgres() as server:
        yield server
