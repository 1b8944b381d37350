"""The project's images: of the release under test, or as our script builds them, once."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from support.documentation.examples import REPOSITORY
from support.documentation.packages import released, the_file

BUILD = REPOSITORY / ".ci" / "images"
OPERATOR_IMAGE = "snaploom-operator:test"
SPARK_IMAGE = "snaploom-spark:test"


def image_archive(name: str) -> Path:
    """The archive (OCI) of the image `operator` or `spark`."""
    folder = released()
    return the_file(folder, f"snaploom-{name}-*.oci.tar") if folder else built_archive(name)


def bill_of_materials(name: str) -> Path:
    """What is in an image (CycloneDX)."""
    folder = released()
    if folder:
        return the_file(folder, f"snaploom-{name}-*.cdx.json")
    return built_archive(name).with_suffix(".cdx.json")


@cache
def built_archive(name: str) -> Path:
    """The archive that `.ci/images` builds of this checkout.

    Raises:
        RuntimeError: it cannot be built here; the script has printed why.
    """
    done = subprocess.run([BUILD, name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the image {name} cannot be built: see the output of {BUILD}")
    return Path(done.stdout.strip())
