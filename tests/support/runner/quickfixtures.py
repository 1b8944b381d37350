"""Fixtures of `pytest --quick` in place of those that start servers: they skip the test."""

from collections.abc import Callable

import pytest


def _skipping(name: str) -> Callable[[], None]:
    @pytest.fixture(name=name, scope="session")
    def fixture() -> None:
        pytest.skip(f"needs {name}")

    return fixture


browser = _skipping("browser")
control_plane = _skipping("control_plane")
hdfs = _skipping("hdfs")
mariadb = _skipping("mariadb")
moto = _skipping("moto")
own_control_plane = _skipping("own_control_plane")
postgres = _skipping("postgres")
spark = _skipping("spark")
versitygw = _skipping("versitygw")
