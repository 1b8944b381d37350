"""Expressions that differ in one literal, made of the examples that Spark's functions have.

One literal of an example gives way to `if(i % 2 = 0, it, another)`, so that the expression depends
on the column `i`; its variants have another literal changed, at any depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.skipping.proofconditions import Condition
from support.skipping.prooftables import ProofTable

from snaploom.policy.sqlfunctions import FUNCTIONS, Determinism, Kind
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.skipping.spark.relations.janino import JavaRule

FILES = 4

NAMES = sorted(
    name
    for name, each in FUNCTIONS.items()
    if each.kind is Kind.VALUE and each.determinism is Determinism.ROW and not each.refused
)
"""Functions that expressions of indexes may call."""

_EXAMPLE = re.compile(r"^\s*> SELECT (.+?);\s*$", re.MULTILINE)
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|(?<![\w.'])\d+(?:\.\d+)?(?:[LSYDF]|BD)?(?![\w.'])")

FURTHER = {
    "[]": ["map('a', 'x', 'b', 'y')['a']", "array('x', 'y', 'z')[1]"],
    "=": ["named_struct('p', 1, 'q', 'z') = named_struct('p', 1, 'q', 'z')"],
    "IN": ["named_struct('p', 1) IN (named_struct('p', 1), named_struct('p', 2))"],
    "concat_ws": ["concat_ws(',', 'x', array('a', 'b'))"],
    "size": ["size(array_intersect(array(1), array(0)))"],
    "+": ["timestamp'2024-01-31 10:00:00' + make_interval(0, 1, 0, 2)"],
    "to_json": [
        "to_json(named_struct('a', nullif(1, 1), 'b', 2), map('ignoreNullFields', 'true'))",
        "to_json(from_json('{\"a,b\":1,\"c\":2}', 'a int, c int'))",
    ],
    "to_csv": ["to_csv(named_struct('a', 'x', 'b', 1), map('sep', ';'))"],
    "hour": ["hour(to_time('12:30', 'HH:mm'))"],
    "variant_get": ["variant_get(parse_json('{\"a\": 1, \"b\": 2}'), '$.a', 'int')"],
}
"""Expressions that no example has: what was once equal where it should not have been."""


@dataclass(frozen=True)
class Family:
    """An expression, and others that differ from it in one literal."""

    function: str
    members: tuple[str, ...]
    """The first one is the expression."""


def numbered_files(folder: Path) -> ProofTable:
    """A table of `i`, one number a file."""
    folder.mkdir(parents=True)
    for number in range(FILES):
        pq.write_table(pa.table({"i": pa.array([number], pa.int32())}), folder / f"f{number}")
    return ProofTable("", str(folder), "parquet", {"i": "int"})


def families(frame: DataFrame, function: str) -> Iterator[Family]:
    """Families of the examples of a function that Spark takes."""
    for example in dict.fromkeys([*_examples(frame.sparkSession, function)]):
        literals = list(_LITERAL.finditer(example))
        for varied in literals:
            base = _with(example, varied, _choice(varied[0]))
            others = [
                _with(base_of, at, changed)
                for base_of, at in _rest(example, varied, literals)
                for changed in _changes(at[0])
            ]
            again = _changes(_changes(varied[0])[0])[0]
            others.append(_with(example, varied, f"if(i % 2 = 0, {varied[0]}, {again})"))
            members = _analysed(frame, [base, *others])
            if members and members[0] == base and len(members) > 1:
                yield Family(function, tuple(members))
                break


def _examples(spark: SparkSession, function: str) -> list[str]:
    if function in FURTHER and function not in NAMES:
        return FURTHER[function]
    (*_, usage) = spark.sql(f"DESCRIBE FUNCTION EXTENDED {function}").collect()
    return [*_EXAMPLE.findall(usage[0]), *FURTHER.get(function, ())]


def _choice(literal: str) -> str:
    return f"if(i % 2 = 0, {literal}, {_changes(literal)[0]})"


def _with(text: str, at: re.Match[str], replacement: str) -> str:
    return text[: at.start()] + replacement + text[at.end() :]


def _rest(
    example: str, varied: re.Match[str], literals: Sequence[re.Match[str]]
) -> Iterator[tuple[str, re.Match[str]]]:
    """The example with the varied literal replaced, with each other literal in it."""
    base = _with(example, varied, _choice(varied[0]))
    shift = len(base) - len(example)
    for literal in literals:
        if literal is not varied:
            start = literal.start() + (shift if literal.start() > varied.start() else 0)
            found = _LITERAL.match(base, start)
            if found:
                yield base, found


def _changes(literal: str) -> list[str]:
    """Other literals of the same type."""
    if not literal.startswith("'"):
        number = re.match(r"[\d.]+", literal)
        assert number is not None
        return [f"{number[0][:-1]}{(int(number[0][-1]) + 1) % 10}{literal[number.end() :]}"]
    text = literal[1:-1]
    bumped = re.sub(r"\w(?=\W*$)", lambda found: _bumped(found[0]), text)
    drawn = [bumped, text.swapcase(), text[:-1], text + "x", "false" if text == "true" else text]
    return [f"'{each}'" for each in dict.fromkeys(drawn) if each != text and each[-1:] != "\\"]


def _bumped(character: str) -> str:
    if character.isdigit():
        return str((int(character) + 1) % 10)
    return chr(ord(character) - 1) if character in "zZ" else chr(ord(character) + 1)


def as_text(expression: str) -> str:
    """The expression as text, whatever its type: what no index keeps is inside then."""
    return f"CAST(({expression}) AS STRING)"


def _analysed(frame: DataFrame, texts: Sequence[str]) -> list[str]:
    """Those that Spark takes; some of them may fail when they are computed."""
    try:
        frame.selectExpr(*map(as_text, texts))._jdf.queryExecution().optimizedPlan()
    except (PySparkException, Py4JJavaError):
        if len(texts) == 1:
            return []
        half = len(texts) // 2
        return [*_analysed(frame, texts[:half]), *_analysed(frame, texts[half:])]
    return list(texts)


def keys(frame: DataFrame, texts: Sequence[str]) -> list[str]:
    """The serialised form of each expression; empty where the rule does not show all of it."""
    columns = frame.selectExpr(*(f"{as_text(text)} AS c{n}" for n, text in enumerate(texts)))
    found = json.loads(JavaRule(frame.sparkSession).serialise(columns._jdf))
    shown = [json.dumps(each["expression"]) for each in found]
    return ["" if '["?", ' in each else each for each in shown]


def are_one_to_spark(frame: DataFrame, one: str, other: str) -> bool:
    """Whether Spark holds two expressions for the same one: the oracle of equal keys."""
    columns = frame.selectExpr(f"{as_text(one)} AS one", f"{as_text(other)} AS other")
    plan = columns._jdf.queryExecution().optimizedPlan()
    first, second = (plan.expressions().apply(n).child() for n in range(2))
    return bool(first.semanticEquals(second))


SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.columnNameOfCorruptRecord": "c",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    "spark.sql.legacy.collationAwareHashFunctions": "true",
    "spark.sql.legacy.javaCharsets": "true",
    "spark.sql.legacy.negativeIndexInArrayInsert": "true",
    "spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv": "true",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.truncateForEmptyRegexSplit": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.session.timeZone": "Asia/Kolkata",
}
"""Settings that change values of expressions, with other values than their defaults."""

HARMLESS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "3",
}
"""Settings that change none."""


@contextmanager
def under(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A session with some settings, in a `with` block."""
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(setting(spark, name, value))
        yield


def questions(frame: DataFrame, texts: Sequence[str]) -> list[Condition]:
    """For each expression, that it equals each of the values that it has."""
    found = []
    for text in texts:
        shown = as_text(text)
        try:
            rows = frame.selectExpr(f"{shown} AS value").distinct().collect()
        except (PySparkException, Py4JJavaError, UnicodeDecodeError):
            continue
        values = sorted(row[0] for row in rows if row[0] is not None)
        about = frozenset({shown})
        found += [
            Condition(f"{shown} = {_quoted(value)}", frozenset({"i"}), (), about)
            for value in values
        ]
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def indexable(frame: DataFrame, drawn: Sequence[Family]) -> list[Family]:
    """Families about whose expressions indexes may be kept, one for each key."""
    found: dict[str, Family] = {}
    for family in drawn:
        (key,) = keys(frame, family.members[:1])
        if '["col", "i"' in key:
            found.setdefault(key, family)
    return list(found.values())
