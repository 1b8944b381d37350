"""Caches lie where the desktop keeps them; a user without a home, as in containers, has none."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from snaploom.errors import ArgumentInvalid
from snaploom.localfiles import CACHE_VARIABLE, cache_folder
from snaploom.run.driverlock import cached_jar
from snaploom.run.session.classarchive import archive_options
from snaploom.sources.databases.drivers import DRIVER_JAR_BY_NAME


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user id that the machine does not know, without HOME."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", CACHE_VARIABLE, "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)


def test_named_folder_comes_first(tmp_path: Path) -> None:
    assert cache_folder({CACHE_VARIABLE: str(tmp_path)}) == tmp_path / "snaploom"
    assert cache_folder({}) == Path.home() / ".cache" / "snaploom"


@pytest.mark.usefixtures("homeless")
def test_user_without_a_home_starts_spark_without_an_archive(tmp_path: Path) -> None:
    assert archive_options(tmp_path, {}) == ""


@pytest.mark.usefixtures("homeless")
def test_user_without_a_home_learns_what_to_set_for_drivers() -> None:
    with pytest.raises(ArgumentInvalid, match="no place for JDBC drivers") as refused:
        cached_jar(DRIVER_JAR_BY_NAME["postgresql"])
    assert refused.value.path == CACHE_VARIABLE
