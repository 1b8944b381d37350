"""Drivers of a project are those of its lock file, byte for byte, or none."""

import hashlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from support.declared.declarations import document

from snaploom.cli.main import run_command
from snaploom.errors import ArgumentInvalid
from snaploom.run.declarations import read_declarations
from snaploom.run.driverlock import (
    LOCK_FILE,
    accelerator_jar,
    cached_jar,
    jars_for,
    read_lock,
    write_lock,
)
from snaploom.sources.databases.drivers import COMET_JAR, DRIVER_JARS, DriverJar

COMPONENTS = Path(__file__).parents[2] / "support" / "components"
JAR = b"a driver"
POSTGRES = DriverJar("postgresql", "org.postgresql:postgresql:1.0", hashlib.sha256(JAR).hexdigest())
OTHER = DriverJar("org.example:other:2", "org.example:other:2", hashlib.sha256(b"2").hexdigest())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)


def keep(jar: DriverJar, content: bytes = JAR) -> Path:
    file = cached_jar(jar)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return file


def declare(folder: Path = Path(), **changes: object) -> Path:
    """A source in a database."""
    jdbc = {
        "driver": "POSTGRESQL", "host": "db", "database": "shop", "tableReference": "public.a",
        "snapshot": {"fromReadTime": {}}, **changes,
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    file = folder / "source.yaml"
    file.write_text(yaml.safe_dump(document("DataSource", "orders", {"jdbc": jdbc})))
    return file


def jars_of(file: Path) -> tuple[Path, ...]:
    return jars_for(read_declarations([file]).loaded)


@pytest.mark.parametrize(("component", "jars"), [("jdbc", DRIVER_JARS), ("comet", [COMET_JAR])])
def test_the_list_is_what_tests_and_the_image_have(component, jars):
    folder = COMPONENTS / component
    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert {jar.file_name: jar.sha256 for jar in jars} == sums
    space = "{http://maven.apache.org/POM/4.0.0}"
    found = ElementTree.parse(folder / "pom.xml").iter(f"{space}dependency")
    names = ("groupId", "artifactId", "version")
    pom = {":".join(each.findtext(f"{space}{name}", "") for name in names) for each in found}
    assert {jar.coordinates for jar in jars} == pom


def test_the_accelerator_is_that_of_the_lock_and_no_driver() -> None:
    comet = DriverJar("comet", COMET_JAR.coordinates, hashlib.sha256(JAR).hexdigest())
    file = declare(driver="SQLSERVER", driverClass="org.example.Driver")
    assert accelerator_jar(read_declarations([file]).loaded) is None
    write_lock(Path(LOCK_FILE), {comet.name: comet})
    kept = keep(comet)
    assert accelerator_jar(read_declarations([file]).loaded) == kept
    assert jars_of(file) == ()
    kept.write_bytes(b"another")
    with pytest.raises(ArgumentInvalid, match=r"accelerator comet .* not that of the lock file"):
        accelerator_jar(read_declarations([file]).loaded)


def test_a_source_has_the_locked_driver_of_its_database_only() -> None:
    write_lock(Path(LOCK_FILE), {each.name: each for each in (POSTGRES, OTHER)})
    kept = keep(POSTGRES)
    assert jars_of(declare()) == (kept,)
    assert jars_of(declare(driver="MARIADB")) == ()


def test_the_lock_of_a_folder_above_counts_for_declarations_below() -> None:
    write_lock(Path(LOCK_FILE), {POSTGRES.name: POSTGRES})
    kept = keep(POSTGRES)
    assert jars_of(declare(Path("below"))) == (kept,)


def test_a_driver_of_coordinates_serves_sources_that_name_its_class() -> None:
    write_lock(Path(LOCK_FILE), {OTHER.name: OTHER})
    kept = keep(OTHER, b"2")
    assert jars_of(declare(driverClass="org.example.Driver")) == (kept,)


def test_without_a_lock_nothing_is_added() -> None:
    assert jars_of(declare()) == ()


def test_a_driver_that_is_not_here_is_an_error_with_the_command() -> None:
    write_lock(Path(LOCK_FILE), {POSTGRES.name: POSTGRES})
    with pytest.raises(ArgumentInvalid, match="not installed") as refused:
        jars_of(declare())
    assert str(refused.value.hint).endswith("run: snaploom drivers install postgresql")
    assert refused.value.expected == f"{POSTGRES.coordinates}, which {LOCK_FILE} names"


@pytest.mark.parametrize("name", [*(jar.name for jar in DRIVER_JARS), "org.example:other:3", "b"])
@pytest.mark.parametrize("coordinates", ["org.example:postgresql:42.7.14", "org.example:other:2"])
def test_a_name_in_a_lock_stands_for_no_other_jar(name: str, coordinates: str) -> None:
    Path(LOCK_FILE).write_text(f"{name} {coordinates} sha256:{'0' * 64}\n")
    for command in (["list"], ["install"], ["install", name, "--unlisted"]):
        assert run_command(["drivers", *command]) == 2
    with pytest.raises(ArgumentInvalid, match="to another jar") as refused:
        jars_of(declare())
    assert f"{LOCK_FILE}: {name} {coordinates}" in str(refused.value.found)


@pytest.mark.parametrize("names", [[], [OTHER.name]])
def test_an_unknown_jar_of_a_lock_is_not_fetched_without_a_word(names, capsys):
    write_lock(Path(LOCK_FILE), {OTHER.name: OTHER})
    assert run_command(["drivers", "install", *names]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert f"{OTHER.coordinates}, which {LOCK_FILE} names" in printed
    assert f"snaploom drivers install {OTHER.coordinates} --unlisted" in printed
    with pytest.raises(ArgumentInvalid, match="not installed") as refused:
        jars_of(declare(driverClass="org.example.Driver"))
    assert "only if you trust it" in str(refused.value.hint)


def test_a_jar_that_was_changed_is_refused_before_it_is_used() -> None:
    write_lock(Path(LOCK_FILE), {POSTGRES.name: POSTGRES})
    keep(POSTGRES, b"another driver")
    with pytest.raises(ArgumentInvalid, match="not that of the lock file") as refused:
        jars_of(declare())
    assert POSTGRES.sha256 in str(refused.value.expected)


@pytest.mark.parametrize(
    "text",
    ["postgresql", "a org:b:1 sha256:12", f"a ..:b:1 sha256:{'0' * 64}",
     f"a org:../b:1 sha256:{'0' * 64}", "\x00\xff", "a" * 70_000],
)  # fmt: skip
def test_what_is_no_lock_file_is_refused(text: str) -> None:
    Path(LOCK_FILE).write_text(text, "latin-1")
    with pytest.raises(ArgumentInvalid, match="no lock file"):
        read_lock(Path(LOCK_FILE))


def test_the_list_shows_what_is_locked_and_installed(capsys: pytest.CaptureFixture[str]) -> None:
    write_lock(Path(LOCK_FILE), {each.name: each for each in (POSTGRES, OTHER)})
    keep(POSTGRES)
    assert run_command(["drivers", "list"]) == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert lines["postgresql"] == [POSTGRES.coordinates, "yes", "yes"]
    assert lines[OTHER.name] == [OTHER.coordinates, "yes", "no"]
    assert lines["duckdb"][1:] == ["no", "no"]


@pytest.mark.parametrize(
    ("names", "found"),
    [(["postgres"], "did you mean `postgresql`?"), ([], "no driver is named"),
     (["../../etc:a:1"], "GROUP:ARTIFACT:VERSION")],
)  # fmt: skip
def test_names_of_no_driver_are_refused(names, found, capsys):
    assert run_command(["drivers", "install", *names]) == 2
    assert found in capsys.readouterr().err
    assert not Path(LOCK_FILE).exists()
