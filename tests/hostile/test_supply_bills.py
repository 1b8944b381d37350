"""A bill of materials against the files of an image, in both directions."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from packageurl import PackageURL
from support.hostile.supply import script

SBOM = script("sbom")
CHECK = script("sbomcheck")
SITE = "opt/snaploom/python/lib/python3.11/site-packages"
JAR = "opt/spark/jars/made-1.0.jar"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The files of an image with one package of each kind; folders are links, as in Debian."""
    write(tmp_path / "etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
    write(tmp_path / "usr/bin/tool", "a program")
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / SITE).mkdir(parents=True)
    add_debian(tmp_path, "tool", "1.0", ["/etc/os-release", "/bin", "/bin/tool"])
    add_python(tmp_path, "woven", ["woven.py", "../../../bin/woven"])
    write(tmp_path / SITE / "__pycache__" / "woven.cpython-311.pyc", "compiled")
    add_jar(tmp_path / JAR)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def add_debian(root: Path, name: str, version: str, paths: list[str]) -> None:
    status = root / "var/lib/dpkg/status"
    text = status.read_text() if status.exists() else ""
    fields = f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\n"
    write(status, f"{text}{fields}Source: made-{name} (9)\nVersion: {version}\n\n")
    write(
        root / f"var/lib/dpkg/info/{name}:amd64.list",
        "/.\n" + "".join(f"{path}\n" for path in paths),
    )


def add_python(root: Path, name: str, paths: list[str]) -> None:
    for path in paths:
        write(root / SITE / path, "text")
    written = [*paths, f"{name}-1.0.dist-info/METADATA", f"{name}-1.0.dist-info/RECORD"]
    folder = root / SITE / f"{name}-1.0.dist-info"
    write(folder / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    write(folder / "RECORD", "".join(f"{path},,\n" for path in written))


def add_jar(path: Path, content: str = "classes") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("content", content)


def difference(root: Path, bill: str):
    return CHECK.difference(root, CHECK.parts_of(bill))


def bill_of(root: Path) -> str:
    bill: str = SBOM.bill(root, "made", "1")
    return bill


def test_bill_of_an_image_names_all_that_is_in_it(image: Path) -> None:
    found = difference(image, bill_of(image))
    assert (found.unnamed, found.absent, str(found)) == ((), (), "")


@pytest.mark.parametrize(
    ("add", "path"),
    [
        pytest.param(
            lambda root: write(root / "usr/bin/extra", "x"), "usr/bin/extra", id="program"
        ),
        pytest.param(lambda root: write(root / SITE / "x.pth", "x"), f"{SITE}/x.pth", id="python"),
        pytest.param(
            lambda root: write(root / "etc/ld.so.preload", "x"), "etc/ld.so.preload", id="setting"
        ),
        pytest.param(
            lambda root: write(root / SITE / "__pycache__/x.cpython-311.pyc", "x"),
            f"{SITE}/__pycache__/x.cpython-311.pyc",
            id="only compiled",
        ),
        pytest.param(
            lambda root: add_jar(root / "opt/spark/jars/more/x-1.jar", "more"),
            "opt/spark/jars/more/x-1.jar",
            id="jar in a folder",
        ),
        pytest.param(lambda root: add_jar(root / JAR, "other"), JAR, id="jar in place of another"),
        pytest.param(
            lambda root: (
                add_debian(root, "more", "2", ["/bin/more", "/bin"])
                or write(root / "usr/bin/more", "x")
            ),
            "usr/bin/more",
            id="debian",
        ),
        pytest.param(
            lambda root: add_python(root, "more", ["more.py"]), f"{SITE}/more.py", id="distribution"
        ),
    ],
)
def test_file_that_came_after_the_bill_is_named(
    add: Callable[[Path], None], path: str, image: Path
) -> None:
    bill = bill_of(image)
    add(image)
    found = difference(image, bill)
    assert path in found.unnamed
    assert f"of no component of the bill: {path}" in str(found)


@pytest.mark.parametrize(
    ("gone", "purl"),
    [
        ("usr/bin/tool", "pkg:deb/debian/tool@1.0"),
        (SITE, "pkg:pypi/woven@1.0"),
        (JAR, "pkg:generic/made@1.0"),
    ],
)
def test_component_without_a_file_is_named(gone: str, purl: str, image: Path) -> None:
    bill = bill_of(image)
    for path in (image / gone, image / "etc/os-release", image / "opt/snaploom/python/bin/woven"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    absent = {PackageURL.from_string(each) for each in difference(image, bill).absent}
    assert purl in {each._replace(qualifiers={}, subpath=None).to_string() for each in absent}


def test_two_jars_of_one_name_are_both_in_the_bill(image: Path) -> None:
    add_jar(image / "opt/spark/other" / Path(JAR).name, "other classes")
    found = difference(image, bill_of(image))
    assert found.unnamed == ()


def test_debian_packages_are_named_as_in_advisories(image: Path) -> None:
    (purl,) = [
        PackageURL.from_string(each["purl"])
        for each in json.loads(bill_of(image))["components"]
        if each["purl"].startswith("pkg:deb/")
    ]
    assert purl.qualifiers == {"arch": "amd64", "distro": "debian-12", "upstream": "made-tool@9"}
