"""Chart and images that a cluster gets: those of the checkout, or files of releases.

RELEASE names the folder of a release, which is then tested in place of the checkout. EARLIER names
the folder of one before it, from which a cluster is upgraded; `.ci/earlier` builds one.
"""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

from support.cluster.chart import CHART
from support.cluster.images import OPERATOR_IMAGE, SPARK_IMAGE, image_archive
from support.documentation.packages import released, the_file

EARLIER_VARIABLE = "EARLIER"
CHART_PATTERN = "snaploom-[0-9]*.tgz"
"""Of the chart's archive among the files of a release."""


@dataclass(frozen=True)
class Image:
    """An image that no registry has."""

    reference: str
    """What pods call it; without a registry, as a kubelet completes it."""
    archive: Path
    """OCI."""


@dataclass(frozen=True)
class Artifacts:
    """What is installed in a cluster."""

    chart: Path
    """A folder, or an archive of Helm's."""
    operator: Image
    spark: Image


def present_chart() -> Path:
    """The chart of the release under test, or else of the checkout."""
    folder = released()
    return the_file(folder, CHART_PATTERN) if folder else CHART


def present() -> Artifacts:
    """Those of the release under test, or else of the checkout."""
    folder = released()
    if folder is not None:
        return of_release(folder)
    return Artifacts(
        present_chart(),
        Image(OPERATOR_IMAGE, image_archive("operator")),
        Image(SPARK_IMAGE, image_archive("spark")),
    )


def earlier() -> Artifacts | None:
    """Those of the release before, where the environment names its folder."""
    folder = os.environ.get(EARLIER_VARIABLE)
    return of_release(Path(folder)) if folder else None


def of_release(folder: Path) -> Artifacts:
    """Those of a release; pods name its images by their digests."""
    operator, spark = (
        the_file(folder, f"snaploom-{name}-*.oci.tar") for name in ("operator", "spark")
    )
    return Artifacts(
        the_file(folder, CHART_PATTERN),
        Image(f"snaploom-operator@{digest_of(operator)}", operator),
        Image(f"snaploom-spark@{digest_of(spark)}", spark),
    )


def digest_of(archive: Path) -> str:
    """The digest of the only image of an archive, by which a registry would serve it."""
    with tarfile.open(archive) as opened:
        index = opened.extractfile("index.json")
        assert index is not None
        (described,) = json.load(index)["manifests"]
    return str(described["digest"])
