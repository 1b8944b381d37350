"""What is in the images: settings, packages, files."""

import json
import os
import re
import tomllib

import pytest
from support.cluster.images import distributions_of
from support.documentation.examples import REPOSITORY
from support.hostile.supply import pins_of

pytestmark = [pytest.mark.images, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1800)]
LABEL = "org.opencontainers.image."
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
MEGABYTE = 1_000_000


@pytest.mark.parametrize(("name", "user"), [("operator", "65532:65532"), ("spark", "185:185")])
def test_image_is_not_run_as_root(name, user, request):
    """By a number, since a kubelet does not look into the image's own list of users."""
    assert request.getfixturevalue(f"{name}_image").settings["User"] == user


def test_image_is_labelled(image):
    labels = image.settings["Labels"]
    assert labels[f"{LABEL}version"] == VERSION
    assert labels[f"{LABEL}licenses"] == "Apache-2.0"
    assert labels[f"{LABEL}title"].startswith("snaploom-")
    assert labels[f"{LABEL}description"]


def test_operator_is_small(operator_image):
    assert operator_image.size < 250 * MEGABYTE


def test_operator_has_no_spark(operator_image):
    names = {path.name for path in operator_image.root.rglob("*") if path.is_dir()}
    assert not names & {"pyspark", "py4j", "pyarrow", "numpy", "jvm"}


def test_image_has_what_is_pinned_and_nothing_that_builds(image):
    name = image.settings["Labels"][f"{LABEL}title"].removeprefix("snaploom-")
    lock = REPOSITORY / ".ci" / "locks" / f"{name}.txt"
    pinned = {(pin.name, pin.version) for pin in pins_of(lock).values()}
    found = distributions_of(image.root)
    ours = {"operator": {"snaploom", "snaploom-operator"}, "spark": {"snaploom"}}[name]
    assert found - pinned == {(each, VERSION) for each in ours}
    assert not {name for name, _ in distributions_of(image.root)} & {"pip", "hatchling", "pytest"}


def test_image_contains_nothing_of_the_machine_that_built_it(image):
    """The build has hosts of packages, proxies, certificates and secrets; the image has none."""
    config = json.dumps(image.config)
    assert set(re.findall(r"https?://[^/\s\"]*|_proxy|PIP_|/root", config)) <= {
        "http://127.0.0.1:8080"
    }
    assert os.uname().nodename not in config
    root = image.root
    left = {each.name for name in ("run", "tmp", "root") for each in (root / name).iterdir()}
    assert left <= {".bashrc", ".profile", "lock"}
    assert not (root / "etc" / "pip.conf").exists()
    assert not (root / "build").exists()
    sources = [*(root / "etc" / "apt").glob("sources.list*"), root / "etc" / "hosts"]
    assert "".join(path.read_text() for path in sources if path.is_file()) == ""
    assert (root / "etc" / "apt" / "apt.conf.d" / "01autoremove").read_text().startswith("APT")


def test_all_files_have_one_time(image):
    """So that only their content identifies them."""
    ours = [path for path in (image.root / "opt").rglob("*") if not path.is_symlink()]
    assert {path.lstat().st_mtime for path in ours} == {float(315532800)}


def test_nothing_can_be_written_by_the_images_own_user(image):
    user = int(image.settings["User"].split(":")[0])
    owned = {path for path in (image.root / "opt").rglob("*") if path.lstat().st_uid == user}
    assert {path.relative_to(image.root).as_posix() for path in owned} <= {
        "opt/spark/conf", "opt/spark/work-dir",
    }  # fmt: skip


@pytest.mark.parametrize("component", ["s3a", "jdbc"])
def test_spark_has_the_jars_of_stores_and_databases(component, spark_image):
    sums = (REPOSITORY / "tests" / "support" / "components" / component / "SHA256SUMS").read_text()
    expected = {line.split()[1] for line in sums.splitlines()}
    assert expected <= {path.name for path in spark_image.root.glob("opt/spark/jars/*.jar")}
