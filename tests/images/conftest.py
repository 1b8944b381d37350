"""Fixtures of the tests of images: what is in them, unpacked once a process."""

import pytest
from support.cluster.imagefiles import ImageFiles, unpacked
from support.cluster.images import image_archive


@pytest.fixture(scope="session")
def operator_image(tmp_path_factory: pytest.TempPathFactory) -> ImageFiles:
    """The operator's image."""
    return unpacked(image_archive("operator"), tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="session")
def spark_image(tmp_path_factory: pytest.TempPathFactory) -> ImageFiles:
    """The image of driver and executors."""
    return unpacked(image_archive("spark"), tmp_path_factory.mktemp("spark"))


@pytest.fixture(params=["operator", "spark"])
def image(request: pytest.FixtureRequest) -> ImageFiles:
    """Each of them."""
    found: ImageFiles = request.getfixturevalue(f"{request.param}_image")
    return found
