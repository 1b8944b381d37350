"""What `make packages` builds, for a release too: the same bytes each time, all that is needed."""

import hashlib
import json
import os
import subprocess
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from support.cluster.chart import helm
from support.documentation.examples import REPOSITORY
from support.documentation.packages import (
    build_packages,
    release_packages,
    released,
    the_file,
)

pytestmark = [pytest.mark.release, pytest.mark.slow]
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
PROVENANCE = "provenance.intoto.json"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_packages(tmp_path_factory.mktemp("packages") / "made")


def sums_in(packages: Path) -> dict[str, str]:
    """SHA-256 by the names of files, as the list has them."""
    lines = (packages / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in map(str.split, lines)}


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return {each.filename for each in opened.infolist()}


def metadata_of(wheel: Path) -> dict[str, list[str]]:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [each for each in opened.namelist() if each.endswith(".dist-info/METADATA")]
        found = Parser().parsestr(opened.read(name).decode())
    return {key: found.get_all(key, []) for key in found}


def test_built_again_elsewhere_it_is_the_same(packages: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        again = build_packages(tmp_path / "deeper" / "made", TZ="Asia/Tokyo", LC_ALL="C")
    finally:
        os.umask(before)
    first, second = sums_in(packages), sums_in(again)
    differing = {name for name in second if second[name] != first.get(name)}
    # A release has more than packages, and its provenance names that.
    assert differing == ({PROVENANCE} if released() else set())
    assert len(first) == len(list(packages.iterdir())) - 1


def test_sums_are_those_of_the_files(packages: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=packages, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_library_has_no_operator_and_the_operator_only_itself(packages: Path) -> None:
    library = names_in(the_file(packages, "snaploom-*.whl"))
    operator = names_in(the_file(packages, "snaploom_operator-*.whl"))
    assert {name.split("/")[0].split("-")[0] for name in library} == {"snaploom"}
    assert {name.split("/")[0].split("-")[0] for name in operator} == {"snaploom_operator"}
    assert {"snaploom/py.typed", "snaploom/cli/templates/model.yaml"} <= library
    assert f"snaploom-{VERSION}.dist-info/licenses/LICENSE" in library
    assert f"snaploom_operator-{VERSION}.dist-info/licenses/LICENSE" in operator
    assert not [name for name in library | operator if "test" in Path(name).parts]


def test_operator_needs_the_library_of_its_own_version(packages: Path) -> None:
    needed = metadata_of(the_file(packages, "snaploom_operator-*.whl"))["Requires-Dist"]
    assert f"snaploom=={VERSION}" in needed


def test_core_needs_neither_spark_nor_arrow_nor_kubernetes(packages: Path) -> None:
    library = needs(the_file(packages, "snaploom-*.whl"))
    operator = needs(the_file(packages, "snaploom_operator-*.whl"))
    heavy = {"pyspark", "pyarrow", "numpy", "pandas", "opensearch-py", "botocore"}
    assert not (library | operator) & heavy
    assert "kubernetes" not in library
    assert "kubernetes" in operator


def needs(wheel: Path) -> set[str]:
    found = [Requirement(each) for each in metadata_of(wheel)["Requires-Dist"]]
    return {each.name for each in found if not each.marker}


@pytest.mark.parametrize("name", ["snaploom", "snaploom_operator"])
def test_sources_give_the_wheel_of_the_release(name: str, packages: Path, tmp_path: Path) -> None:
    with tarfile.open(the_file(packages, f"{name}-{VERSION}.tar.gz")) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    epoch = json.loads((packages / PROVENANCE).read_text())["predicate"][
        "buildDefinition"]["internalParameters"]["SOURCE_DATE_EPOCH"]  # fmt: skip
    python = REPOSITORY / ".venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path / "out"],
        cwd=source, env={**os.environ, "SOURCE_DATE_EPOCH": epoch}, check=True, capture_output=True,
    )  # fmt: skip
    (again,) = (tmp_path / "out").iterdir()
    assert again.read_bytes() == the_file(packages, f"{name}-*.whl").read_bytes()


def test_chart_is_rendered_with_images_of_its_version(packages: Path) -> None:
    text = helm("template", "snaploom", *packages.glob("snaploom-*.tgz"), "--kube-version", "1.34")
    images = {
        container["image"]
        for each in yaml.safe_load_all(text) if each and each["kind"] == "Deployment"
        for container in each["spec"]["template"]["spec"]["containers"]
    }  # fmt: skip
    assert images
    assert all(image.endswith(f":{VERSION}") for image in images), images


def test_kinds_are_those_of_the_checkout(packages: Path) -> None:
    released = list(yaml.safe_load_all(the_file(packages, "snaploom-crds-*.yaml").read_text()))
    here = [yaml.safe_load(path.read_text()) for path in sorted(REPOSITORY.glob("crds/*.yaml"))]
    assert released == here


def test_provenance_names_every_file_with_its_sum_and_the_commit(packages: Path) -> None:
    statement = json.loads((packages / PROVENANCE).read_text())
    named = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    files = [path for path in packages.iterdir() if path.name not in (
        "SHA256SUMS", PROVENANCE)]  # fmt: skip
    assert named == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.strip()
    definition = statement["predicate"]["buildDefinition"]
    assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": head}
    assert str(REPOSITORY) not in json.dumps(statement)
    assert os.uname().nodename not in json.dumps(statement)
