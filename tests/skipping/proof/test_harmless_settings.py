"""Settings that are listed as harmless are read by no class of Spark's expressions."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest
from pyspark.sql import SparkSession

from snaploom.skipping.spark.relations.fingerprint import HARMLESS_SETTINGS
from snaploom.spark.jvm import jvm_of

JARS = sorted((Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"))
CONF = "org.apache.spark.sql.internal.SQLConf"
PACKAGES = (
    *(f"org/apache/spark/sql/catalyst/{each}/" for each in ("expressions", "json", "csv", "xml")),
    "org/apache/spark/sql/catalyst/util/",
)
CODE_GENERATOR = "org/apache/spark/sql/catalyst/expressions/codegen/"
"""Compiles expressions, and is none."""

CALL = re.compile(
    r"// (?:Interface)?Method (?:org/apache/spark/sql/internal/(?:SQLConf|SqlApiConf)\$?\.)?"
    r"\"?(\w+)\"?:\(\)"
)
METHOD = re.compile(r"^  \S.* (\w+)\(\)")


def _code(names: list[str]) -> Iterator[str]:
    paths = ":".join(map(str, JARS))
    for start in range(0, len(names), 400):
        command = ["javap", "-c", "-p", "-cp", paths, *names[start : start + 400]]
        yield from subprocess.run(command, capture_output=True, text=True).stdout.splitlines()


def _classes() -> list[str]:
    return [
        name.removesuffix(".class").replace("/", ".")
        for jar in JARS
        for name in ZipFile(jar).namelist()
        if name.startswith(PACKAGES)
        and name.endswith(".class")
        and not name.startswith(CODE_GENERATOR)
    ]


@pytest.fixture(scope="module")
def read_keys(spark: SparkSession) -> set[str]:
    """Keys of the settings that classes of expressions read, by any method of SQLConf."""
    called = {
        found[1]
        for line in _code(_classes())
        if "SQLConf" in line or "SqlApiConf" in line
        for found in CALL.finditer(line)
    }
    entries: dict[str, set[str]] = defaultdict(set)
    method = ""
    for line in _code([CONF]):
        if found := METHOD.match(line):
            method = found[1]
        if f"Method {CONF.replace('.', '/')}$." in line and (found := CALL.search(line)):
            entries[method].add(found[1])
    conf = jvm_of(spark).org.apache.spark.sql.internal.SQLConf
    names = called.union(*(entries[each] for each in called))
    return {getattr(conf, name)().key() for name in names if name.isupper()}


def test_setting_that_an_expression_reads_is_not_called_harmless(read_keys: set[str]) -> None:
    assert {"spark.sql.ansi.enabled", "spark.sql.jsonGenerator.ignoreNullFields"} <= read_keys
    assert not {key for key in read_keys if any(key.startswith(each) for each in HARMLESS_SETTINGS)}
