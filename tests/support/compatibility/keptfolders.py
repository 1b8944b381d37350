"""Folders as a release wrote them: a published output, and two indexes about its files.

`PYTHONPATH=tests python -m support.compatibility.keptfolders` (`make freeze`) writes those of this
version. They name their place by absolute URIs, so that tests bring them back to the same place.
"""

import fcntl
import shutil
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from generation.versions import project_version
from packaging.version import Version
from pyspark.sql import SparkSession
from support.compatibility.releases import FOLDER, KeptRelease

import snaploom as sl
from snaploom import skipping
from snaploom.cli.init import init

PLACE = Path("/tmp/snaploom/compatibility")
"""Where the folders of all releases are written, and brought back to."""
ARCHIVE = "folders.tar.gz"
NOW = "2024-05-03"
"""The time of the run, which publishes the orders of 1 May; those of 2 May are left to the test."""
FORMS = ("NATIVE", "XSKIPPER")
OUTPUT = "orders-wide"


@dataclass(frozen=True)
class KeptFolders:
    """Folders of one release, at their place."""

    root: Path

    @property
    def model(self) -> Path:
        return self.root / "shop" / "model.yaml"

    @property
    def output(self) -> Path:
        return self.root / "shop" / "wide"

    @property
    def data(self) -> str:
        return (self.output / "data").as_uri()

    def indexes(self, form: str) -> str:
        """URI of the folder with the index of a form."""
        return (self.root / form.lower()).as_uri()


def write_folders(folders: KeptFolders, spark: SparkSession) -> None:
    """Publish one day, and index its files in each form."""
    shutil.rmtree(folders.root, ignore_errors=True)
    folders.root.mkdir(parents=True)
    init(folders.root / "shop")
    project = sl.load(folders.model)
    run = project.run(OUTPUT, now=NOW, limit=1, spark=spark, progress=False)
    assert [snapshot.rows for snapshot in run.published] == [3]
    for form in FORMS:
        builder = skipping.skipping_index(spark, folders.indexes(form)).on_path(folders.data)
        builder = builder.add_min_max("data.order_id").add_value_set("data.customer_id")
        assert builder.stored(folders.indexes(form), form).build().indexed == 1


@contextmanager
def folders_of(release: KeptRelease) -> Iterator[KeptFolders]:
    """The folders of a release, unpacked where it wrote them; one user at a time."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / f"{release.version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folders = KeptFolders(PLACE / release.version)
        shutil.rmtree(folders.root, ignore_errors=True)
        with tarfile.open(release.folder / ARCHIVE) as opened:
            opened.extractall(PLACE, filter="data")
        try:
            yield folders
        finally:
            shutil.rmtree(folders.root, ignore_errors=True)


def main() -> int:
    """Write the folders of this version."""
    release = KeptRelease(FOLDER / Version(project_version()).base_version)
    folders = KeptFolders(PLACE / release.version)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = spark.getOrCreate()
    try:
        write_folders(folders, session)
    finally:
        session.stop()
    release.folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(release.folder / ARCHIVE, "w:gz") as opened:
        opened.add(folders.root, release.version)
    print(f"kept the folders of {release.version}: {release.folder / ARCHIVE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
