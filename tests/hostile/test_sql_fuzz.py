"""Whatever passes the gate resolves to listed functions and declared relations only.

Judged by an oracle of its own: the JSON that Spark writes of a resolved plan, and a list of what
must not be in it. It shares no code and no list with the gate.
"""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.hostile.sparkfunctions import spark_functions
from support.hostile.sqlfuzz import CANARY, Text, fuzzed
from support.runner.proofscope import IS_WHOLE, show_progress

from snaploom.errors import SourceSchemaInvalid
from snaploom.hadoop.jvm import jvm_of
from snaploom.sparkgate import gate
from snaploom.sparkgate.gate import SqlPlace, check_resolved, checked_expression, checked_query
from snaploom.sparkgate.treerules import VALUES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNT = 100_000 if IS_WHOLE else 1_000
PLACE = SqlPlace("Kind/name", "spec.field", SourceSchemaInvalid, "legal SQL")
SCHEMA = "a int, b string, s struct<x: int>"

_CLASS = re.compile(r'"class"\s*:\s*"([^"]+)"')
_MUST_NOT_BE = re.compile(
    r"Reflect|UDF|UDAF|UDTF|Invoke|NewInstance|Aggregator$|XPath|Protobuf|PythonWorkerLogs|"
    r"LogicalRelation|LogicalRDD|DataSourceV2|HiveTable|\.Range$|Keywords|Collations$|"
    r"VariableReference|Unresolved|Command|ScriptTransformation|Streaming|execution\."
)
"""Names of classes that call by name, are somebody's, or read what nobody declared."""
_MAY_FETCH = re.compile("XSDPath|DOCTYPE", re.IGNORECASE)
"""What is in texts that would ask for something once they are computed."""


@pytest.fixture(scope="module")
def room(spark: SparkSession) -> Iterator[DataFrame]:
    """A source, and beside it what no text may come to."""
    spark.range(3).createOrReplaceTempView("secret")
    spark.udf.register("mine", lambda value: value)
    spark.sql(f"DECLARE OR REPLACE VARIABLE v STRING DEFAULT '{CANARY}'")
    spark.conf.set("spark.canary", CANARY)
    spark.conf.set("spark.sql.variable.substitute", "true")
    system = jvm_of(spark).java.lang.System
    system.setProperty("snaploom.canary", CANARY)
    yield spark.sql("SELECT * FROM VALUES (1, 'b', named_struct('x', 1)) AS src(a, b, s)")
    system.clearProperty("snaploom.canary")
    spark.conf.set("spark.sql.variable.substitute", "false")
    spark.conf.unset("spark.canary")
    spark.sql("DROP TEMPORARY VARIABLE v")
    spark.sql("DROP TEMPORARY FUNCTION mine")
    spark.catalog.dropTempView("secret")


def passed(spark: SparkSession, source: DataFrame, text: Text) -> DataFrame | None:
    """What a text comes to behind the gate; None where the gate refuses it.

    Raises:
        PySparkException, Py4JError: Spark refuses it.
    """
    try:
        if text.is_query:
            return checked_query(spark, text.text, {"src": source}, PLACE)
        made = source.select(checked_expression(spark, text.text, PLACE).column)
        check_resolved(made, [source], PLACE, VALUES)
    except SourceSchemaInvalid:
        return None
    return made


def beyond(frame: DataFrame) -> list[str]:
    """What a resolved plan has that nothing may have, by Spark's own JSON and text of it."""
    plan = frame._jdf.queryExecution().analyzed()
    classes = set(_CLASS.findall(plan.toJSON()))
    for place in range(plan.subqueriesAll().size()):
        classes |= set(_CLASS.findall(plan.subqueriesAll().apply(place).toJSON()))
    found = [name for name in classes if _MUST_NOT_BE.search(name)]
    return sorted(found) + re.findall(CANARY, plan.toString())


@pytest.fixture(scope="module")
def statements(spark: SparkSession) -> list[str]:
    documented = [e for one in spark_functions(spark) for e in one.examples]
    return [e for e in documented if not e.upper().startswith("SET ")]


@pytest.mark.timeout(4 * 3600 if IS_WHOLE else 600)
def test_what_passes_the_gate_is_listed_and_declared(
    spark: SparkSession, room: DataFrame, statements: list[str]
) -> None:
    ends: Counter[str] = Counter()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        for number, text in enumerate(islice(fuzzed(20260101, statements, url), COUNT)):
            try:
                frame = passed(spark, room, text)
            except (PySparkException, Py4JError):
                ends["unresolved"] += 1
                continue
            ends["refused" if frame is None else "passed"] += 1
            assert frame is None or beyond(frame) == [], text
            if frame is not None and _MAY_FETCH.search(text.text):
                with suppress(PySparkException, Py4JError):
                    frame.limit(1).collect()
            if number % 5_000 == 0:
                show_progress(f"{number} texts: {dict(ends)}")
        with pytest.raises(BlockingIOError):  # nobody asked for anything
            listener.accept()
    print(dict(ends))
    assert min(ends["passed"], ends["refused"]) > COUNT // 10


def test_a_gate_without_its_lists_is_found_out(
    spark: SparkSession,
    room: DataFrame,
    statements: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "judge_parsed", lambda *_: ())
    monkeypatch.setattr(gate, "judge_resolved", lambda *_: ())
    caught: set[str] = set()
    for text in islice(fuzzed(20260101, statements, "http://127.0.0.1:1/x"), 250):
        with suppress(PySparkException, Py4JError):
            frame = passed(spark, room, text)
            caught |= set(beyond(frame)) if frame is not None else set()
    assert any("Reflect" in name for name in caught)


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.Math', 'abs', -1)",
        "mine(b)",
        "(select max(id) from secret)",
        "xpath_string(b, 'a')",
        "'${system:snaploom.canary}'",
        "'${spark.canary}'",
    ],
)
def test_the_oracle_finds_what_spark_without_the_gate_accepts(
    spark: SparkSession, room: DataFrame, text: str
) -> None:
    assert beyond(room.selectExpr(text)) != []
