"""Files to prove something about, and the places in which indexes are kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.fakeopensearch import fake_port, real_port
from support.skipping.onequalsoff import IndexHome
from support.skipping.proofcases import ProofCase
from support.skipping.proofgenerated import Generated, generate
from support.skipping.proofmetadata import (
    ExportedHome,
    FolderHome,
    ImportedHome,
    OpenSearchHome,
    XskipperHome,
)
from support.skipping.xskipperfiles import JavaBlooms

__all__ = ["fake_port", "real_port"]  # fixtures


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> ProofCase:
    return ProofCase(spark, tmp_path)


@pytest.fixture(scope="session")
def blooms(spark: SparkSession) -> JavaBlooms:
    return JavaBlooms(spark)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> IndexHome:
    """A place in which indexes are kept, of the kind that a test asks for."""
    match kind.split():
        case ["folder"]:
            return FolderHome(tmp_path)
        case ["xskipper"]:
            return XskipperHome(tmp_path)
        case ["exported"]:
            return ExportedHome(tmp_path)
        case ["opensearch", server]:
            return OpenSearchHome(request.getfixturevalue(f"{server}_port"))
        case ["imported", version, how]:
            blooms = request.getfixturevalue("blooms")
            return ImportedHome(tmp_path, blooms, int(version), how == "trusted")
    raise ValueError(f"there is no such kind of home: {kind}")


@pytest.fixture(scope="module")
def generated(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, int], Generated]:
    """Makes everything of a layout and a seed, once for all homes."""
    made: dict[tuple[str, int], Generated] = {}

    def get(layout: str, seed: int) -> Generated:
        if (layout, seed) not in made:
            folder = tmp_path_factory.mktemp(f"{layout}-{seed}")
            made[layout, seed] = generate(spark, folder, layout, seed)
        return made[layout, seed]

    return get


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        if shares := dict(report.user_properties).get("shares"):
            terminalreporter.write_line(f"{report.nodeid.rpartition('[')[2]} {shares}")
