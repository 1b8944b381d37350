"""Fixtures of stores that other processes serve; each is started when a test first asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers.hdfsserver import running_hdfs
from support.servers.s3servers import S3Server, running_moto, running_versitygw


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server whose conditional writes are right."""
    with running_versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A second S3 server."""
    folder: Path = tmp_path_factory.mktemp("moto")
    with running_moto(folder) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URI of an HDFS, without a `/` at its end."""
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri
