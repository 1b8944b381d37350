"""What is in the images: settings, packages, files, all of it in their bills of materials."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from operator import or_

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from support.cluster.images import bill_of_materials, distributions_of
from support.documentation.examples import REPOSITORY
from support.hostile.supply import COMPONENTS, SCRIPTS, pins_of, script, sum_of

from snaploom_operator.submit.applications import JOB_FILE

pytestmark = [pytest.mark.images, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1800)]
CHECK = script("sbomcheck")
LABEL = "org.opencontainers.image."
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
MEGABYTE = 1_000_000


def test_image_is_not_run_as_root(image):
    """By a number, since a kubelet does not look into the image's own list of users."""
    user = "65532:65532" if name_of(image) == "operator" else "185:185"
    assert image.settings["User"] == user


def name_of(image):
    return image.settings["Labels"][f"{LABEL}title"].removeprefix("snaploom-")


def test_bill_of_materials_is_valid(image):
    text = bill_of(image)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = json.loads(text)["metadata"]["component"]
    assert (found["name"], found["version"]) == (f"snaploom-{name_of(image)}", VERSION)


def bill_of(image):
    return bill_of_materials(f"{name_of(image)}/{image.config['architecture']}").read_text()


def test_every_file_is_of_a_component_and_every_component_has_a_file(image):
    """But for what Debian's packages write when they are installed: lists and settings."""
    assert str(CHECK.difference(image.root, CHECK.parts_of(bill_of(image)))) == ""


def listed(image, kind):
    components = json.loads(bill_of(image))["components"]
    wanted = [each for each in components if each["purl"].startswith(kind)]
    return {(each["name"], each["version"]) for each in wanted}


def test_bill_of_materials_lists_what_is_in_the_image(image):
    assert listed(image, "pkg:pypi/") == distributions_of(image.root)
    query = ["dpkg-query", f"--admindir={image.root}/var/lib/dpkg", "--show"]
    shown = subprocess.run(
        [*query, "--showformat=${Package} ${Version}\n"], capture_output=True, text=True, check=True
    )
    assert listed(image, "pkg:deb/") == {tuple(line.split()) for line in shown.stdout.splitlines()}


def test_bill_of_materials_identifies_each_jar_by_its_checksum(each_spark):
    """Wherever it is: Java loads any file of its class path, not only those in Spark's folder."""
    components = json.loads(bill_of(each_spark))["components"]
    sums = {sum_["content"] for each in components for sum_ in each.get("hashes", ())}
    jars = [path for path in each_spark.root.rglob("*.jar") if not path.is_symlink()]
    assert sums == {sha256(jar.read_bytes()).hexdigest() for jar in jars}


def test_programs_of_an_image_are_of_its_architecture(image):
    """And so are all libraries in machine code, as each begins."""
    files = [path for path in image.root.rglob("*") if path.is_file() and not path.is_symlink()]
    starts = [path.read_bytes()[:20] for path in files]
    found = {start[18] for start in starts if start.startswith(b"\x7fELF")}
    assert found == {{"amd64": 62, "arm64": 183}[image.config["architecture"]]}


def test_every_extension_of_python_is_loaded(image):
    program = """
import importlib, sysconfig
from pathlib import Path

place = Path(sysconfig.get_path("platlib"))
for path in sorted(place.rglob("*.so")):
    if ".cpython-" in path.name or ".abi3." in path.name:
        module = path.relative_to(place).with_name(path.name.split(".")[0])
        importlib.import_module(".".join(module.parts))
        print(module)
"""
    plain = replace(image, config={"config": {**image.settings, "Entrypoint": []}})
    done = plain.run("python3", "-c", program)
    assert done.returncode == 0, done.stderr
    assert "pydantic_core/_pydantic_core" in done.stdout.split()


def test_image_is_labelled(image):
    labels = image.settings["Labels"]
    assert labels[f"{LABEL}version"] == VERSION
    assert labels[f"{LABEL}licenses"] == "Apache-2.0"
    assert labels[f"{LABEL}title"].startswith("snaploom-")
    assert labels[f"{LABEL}description"]


def test_operator_is_small(operator_image):
    most = {"amd64": 250, "arm64": 260}[operator_image.config["architecture"]]
    assert operator_image.size < most * MEGABYTE


def test_image_has_what_is_pinned_and_nothing_that_builds(image):
    name = name_of(image)
    locks = ["spark", "oldspark"] if name == "spark-comet" else [name]
    pins = reduce(or_, (pins_of(SCRIPTS / "locks" / f"{each}.txt") for each in locks))
    pinned = {(pin.name, pin.version) for pin in pins.values()}
    found = distributions_of(image.root)
    ours = {"snaploom", "snaploom-operator"} if name == "operator" else {"snaploom"}
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


def test_spark_has_the_jars_of_stores_databases_and_comet(each_spark):
    """Each once, with the locked checksum, beside the jars of the one Spark that they are for."""
    has_comet = name_of(each_spark) == "spark-comet"
    components = ["s3a", "jdbc", "s3aold", "comet"] if has_comet else ["s3a", "jdbc"]
    folder = each_spark.root / "opt/spark/jars"
    texts = [(COMPONENTS / each / "SHA256SUMS").read_text() for each in components]
    lines = [line.split() for text in texts for line in text.splitlines()]
    # Of a jar in two versions, the later component's.
    latest = {jar.rpartition("-")[0]: (jar, digest) for digest, jar in lines}
    expected = dict(latest.values())
    assert expected == {each: sum_of(folder / each) for each in expected}
    ours = latest.keys()
    jars = {path.name for path in folder.glob("*.jar")}
    assert {each for each in jars if each.rpartition("-")[0] in ours} == set(expected)
    cores = {each for each in jars if each.startswith("spark-core_")}
    assert cores == {f"spark-core_2.13-{'4.1.4' if has_comet else '4.3.0'}.jar"}
    assert any("comet" in each for each in jars) is has_comet


def test_operator_runs_without_writing(operator_image):
    done = operator_image.run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION}\n", "")


@pytest.mark.parametrize("command", ["run", "webhook"])
def test_operator_starts_as_the_chart_starts_it(command, operator_image):
    """As far as it gets without a cluster: settings are read, and the API server is looked for."""
    done = operator_image.run("operator", command, "--settings", "/nowhere/settings.yaml")
    assert done.returncode == 2
    assert "/nowhere/settings.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_driver_runs_its_job_without_writing(each_spark):
    """Spark's launcher, its JVM, and the job in Python, which prints its usage."""
    options = ["--master", "local[1]", "--class", "org.apache.spark.deploy.PythonRunner"]
    done = each_spark.run(
        "driver", *options, JOB_FILE, "--help", SPARK_DRIVER_BIND_ADDRESS="127.0.0.1"
    )
    assert done.returncode == 0, done.stderr
    assert "--run-id RUN_ID" in done.stdout


def test_python_of_executors_works_on_rows(each_spark):
    program = """
import pyarrow as pa, pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf
import snaploom.plugins.flint.store

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

@arrow_udf("bigint")
def plus(numbers: pa.Array) -> pa.Array:
    return pc.add(numbers, 1)

print("rows", spark.range(3).select(plus("id").alias("x")).toArrow().to_pydict())
"""
    done = each_spark.run("python3", "-c", program)
    assert done.returncode == 0, done.stderr
    assert "rows {'x': [1, 2, 3]}" in done.stdout


@pytest.mark.variant
def test_flights_are_woven_natively(images):
    """By the image as it is, whose Report names Comet; the rows are those of the example."""
    image = images("spark-comet")
    given, run = image.root / "srv" / "flights", "snaploom run flights-wide --file flights"
    shutil.copytree(REPOSITORY / "examples" / "flights", given)
    write = [sys.executable, given / "data.py", "--to", given, "--months", "1"]
    subprocess.run(write, check=True, capture_output=True)
    place = "mkdir /tmp/snaploom; cp -r /srv/flights /tmp/snaploom; cd /tmp/snaploom"
    done = image.run("bash", "-euc", f"{place}; exec {run} --accelerator comet --output json")
    shutil.rmtree(given)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["accelerator"], report["sparkVersion"]) == ("COMET 1.2.0", "4.1.4")
    assert [each["rows"] for each in report["snapshots"]] == [27_004]


def test_nothing_of_the_folder_of_a_container_is_imported(images):
    """Neither by the program that is started, nor by Spark's workers; `/tmp` can be written."""
    program = "{ echo 'print(1 / 0)' | tee /tmp/pyspark.py /tmp/tempfile.py; } >/dev/null; cd /tmp"
    python = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("rows", spark.sparkContext.parallelize([1, 2]).map(lambda row: row + 1).collect())
"""
    done = images("spark").run("bash", "-c", f'{program}; exec python3 -c "$0"', python)
    assert "rows [2, 3]" in done.stdout, done.stderr


def test_executor_is_sparks_own(each_spark):
    """It ends for want of a driver: its class and its options are known."""
    place = {"SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:9"}
    names = ("EXECUTOR_ID", "APPLICATION_ID", "EXECUTOR_POD_NAME", "EXECUTOR_CORES")
    numbers = {f"SPARK_{name}": "1" for name in (*names, "RESOURCE_PROFILE_ID")}
    memory = {"SPARK_EXECUTOR_MEMORY": "256m", "SPARK_EXECUTOR_POD_IP": "127.0.0.1"}
    done = each_spark.run("executor", **place, **numbers, **memory)
    assert done.returncode != 0
    assert "Failed to connect to" in done.stderr + done.stdout
