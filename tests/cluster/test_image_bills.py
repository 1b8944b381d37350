"""Bills of materials: valid, and about what is in the images."""

import json
import subprocess
import tomllib
from hashlib import sha256

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from support.cluster.images import bill_of_materials, distributions_of, each_image
from support.documentation.examples import REPOSITORY
from support.hostile.supply import script

pytestmark = [pytest.mark.images, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1800)]
NAMES = each_image("operator", "spark", "spark-comet")
CHECK = script("sbomcheck")
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]


def listed(image, kind):
    components = json.loads(bill_of_materials(image).read_text())["components"]
    wanted = [each for each in components if each["purl"].startswith(kind)]
    return {(each["name"], each["version"]) for each in wanted}


@pytest.mark.parametrize("name", NAMES)
def test_bill_of_materials_is_valid(name):
    text = bill_of_materials(name).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    image = json.loads(text)["metadata"]["component"]
    assert (image["name"], image["version"]) == (f"snaploom-{name.split('/')[0]}", VERSION)


@pytest.mark.parametrize("name", NAMES)
def test_bill_of_materials_lists_what_is_in_the_image(name, images):
    image = images(name)
    assert listed(name, "pkg:pypi/") == distributions_of(image.root)
    query = ["dpkg-query", f"--admindir={image.root}/var/lib/dpkg", "--show"]
    shown = subprocess.run(
        [*query, "--showformat=${Package} ${Version}\n"], capture_output=True, text=True, check=True
    )
    assert listed(name, "pkg:deb/") == {tuple(line.split()) for line in shown.stdout.splitlines()}


@pytest.mark.parametrize("name", each_image("spark", "spark-comet"))
def test_bill_of_materials_identifies_each_jar_by_its_checksum(name, images):
    """Wherever it is: Java loads any file of its class path, not only those in Spark's folder."""
    components = json.loads(bill_of_materials(name).read_text())["components"]
    sums = {sum_["content"] for each in components for sum_ in each.get("hashes", ())}
    root = images(name).root
    jars = [path for path in root.rglob("*.jar") if not path.is_symlink()]
    assert sums == {sha256(jar.read_bytes()).hexdigest() for jar in jars}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_of_a_component_and_every_component_has_a_file(name, images):
    """But for what Debian's packages write when they are installed: lists and settings."""
    root = images(name).root
    found = CHECK.difference(root, CHECK.parts_of(bill_of_materials(name).read_text()))
    assert str(found) == ""
