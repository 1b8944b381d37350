"""Pages for a session: their Python, SQL and commands have the results that they show."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from documentation.pagesession import PageSession
from pyspark.sql import SparkSession
from support.documentation.pages import DOCS
from support.servers.keyservices import MemoryKeyService, transit_server
from support.skipping.fakeopensearch import FakeOpenSearch, serving
from support.weaving.sparksession import compiled

from snaploom.skipping import disable

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[PageSession]:
    # A short path, as the pages have: what is printed breaks where a line is full.
    with TemporaryDirectory() as folder, compiled(spark):
        yield PageSession(spark, Path(folder))
        disable(spark)
        for table in spark.catalog.listTables():  # Spark lists them by compiled plans only
            spark.sql(f"DROP TABLE {table.name}")


@pytest.mark.parametrize(
    "name", ["python", "compare-data", "data-contract", "skip-files", "why-not-skipped"]
)
def test_page_does_what_it_shows(name: str, session: PageSession) -> None:
    session.run(DOCS / "how-to" / f"{name}.md")


def test_page_about_xskipper_does_what_it_shows(session, monkeypatch):
    keys = {label: secrets.token_bytes(16) for label in ("columns", "footer")}
    with transit_server(MemoryKeyService(keys)) as server:
        monkeypatch.setenv("VAULT_TOKEN", server.token)
        session.replacements = {"https://vault:8200/v1/transit": server.url}
        session.run(DOCS / "how-to" / "xskipper.md")


def test_page_about_opensearch_does_what_it_shows(session: PageSession) -> None:
    with serving(FakeOpenSearch()) as port:
        session.replacements = {"9200": str(port)}
        session.run(DOCS / "how-to" / "opensearch-indexes.md")
