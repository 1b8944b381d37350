"""The project's images, as its own script builds them: once for what they are made of."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from support.documentation.examples import REPOSITORY

BUILD = REPOSITORY / ".ci" / "images"
OPERATOR_IMAGE = "snaploom-operator:test"
SPARK_IMAGE = "snaploom-spark:test"


@cache
def image_archive(name: str) -> Path:
    """The archive (OCI) of the image `operator` or `spark`.

    Raises:
        RuntimeError: it cannot be built here; the script has printed why.
    """
    done = subprocess.run([BUILD, name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the image {name} cannot be built: see the output of {BUILD}")
    return Path(done.stdout.strip())


def bill_of_materials(name: str) -> Path:
    """What is in an image (CycloneDX)."""
    return image_archive(name).with_suffix(".cdx.json")
