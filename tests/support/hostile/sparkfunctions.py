"""The functions of the Spark that runs, as its own registry and documentation have them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from snaploom.spark.jvm import jvm_of

_EXAMPLE = re.compile(r"\n\s*> (.*?);\s*(?=\n|$)", re.DOTALL)


@dataclass(frozen=True)
class Documented:
    """One function of Spark."""

    name: str
    class_name: str
    """Without its package."""
    examples: tuple[str, ...]
    """Statements of its documentation, SET among them."""


def spark_functions(spark: SparkSession) -> list[Documented]:
    """Every function and table function that Spark has before anybody registers one."""
    analysis = jvm_of(spark).org.apache.spark.sql.catalyst.analysis
    return [
        one
        for registry in (analysis.FunctionRegistry, analysis.TableFunctionRegistry)
        for one in _functions(registry.builtin())
    ]


def _functions(registry: JavaObject) -> list[Documented]:
    names = registry.listFunction()
    found = []
    for place in range(names.size()):
        info = registry.lookupFunction(names.apply(place)).get()
        examples = _EXAMPLE.findall("\n" + (info.getExamples() or ""))
        class_name = str(info.getClassName()).rpartition(".")[2]
        found.append(Documented(str(info.getName()), class_name, tuple(examples)))
    return found
