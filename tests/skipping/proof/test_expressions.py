"""Indexes over expressions: whose values they keep, and under which settings.

Expressions that differ in one literal, made of the examples that Spark's functions have.

One literal of an example gives way to `if(i % 2 = 0, it, another)`, so that the expression depends
on the column `i`; its variants have another literal changed, at any depth.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from support.runner.proofscope import IS_WHOLE, sampled, show_progress
from support.skipping.onequalsoff import IndexOf, IndexSet, judge, needed_files, skipping_by
from support.skipping.proofcases import ProofCase
from support.skipping.proofconditions import Condition
from support.skipping.proofmetadata import FolderHome
from support.skipping.prooftables import ProofTable

from snaploom.policy.sqlfunctions import FUNCTIONS as KNOWN
from snaploom.policy.sqlfunctions import Determinism, Kind
from snaploom.skipping.core import definition
from snaploom.skipping.spark.interfaces.enable import setting, without_skipping
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder
from snaploom.skipping.spark.relations import expressions
from snaploom.skipping.spark.relations.hadoop import JavaRule

FILES = 4

NAMES = sorted(
    name
    for name, each in KNOWN.items()
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


FUNCTIONS = sorted({*NAMES, *FURTHER})
ROUNDS = range(50 if IS_WHOLE else 1)
"""Of the differential fuzz; one has some 450 comparisons."""

PAIRS = [
    ("map('AA', 'American', 'DL', 'Delta')[s]", "map('AA', 'us', 'DL', 'us-south')[s]", "'us'"),
    ("element_at(map('AA', 1), s)", "element_at(map('AA', 2), s)", "2"),
    ("array('x', 'y', 'z')[i]", "array('p', 'q', 'r')[i]", "'p'"),
    ("array_contains(array(0), i)", "array_contains(array(1), i)", "true"),
    ("array_position(array(0), i)", "array_position(array(1), i)", "1"),
    ("concat_ws(',', s, array('a'))", "concat_ws(',', s, array('b'))", "'AA,b'"),
    ("size(array_intersect(array(i), array(0)))", "size(array_intersect(array(i), array(1)))", "1"),
    ("st = named_struct('p', 0)", "st = named_struct('p', 1)", "true"),
    (
        "st IN (named_struct('p', 0), named_struct('p', 7))",
        "st IN (named_struct('p', 1), named_struct('p', 7))",
        "true",
    ),
    ("ts + make_interval(0, 1)", "ts + make_interval(0, 2)", "timestamp'2024-03-01 00:00:00'"),
    ("to_json(st)", "to_json(st, map('ignoreNullFields', 'false'))", """'{"p":null}'"""),
    ("to_json(cast(st AS struct<`a:int,b`:int>))", "to_json(cast(st AS struct<a:int>))", "'{}'"),
    ("hour(to_time(h, 'HH:mm'))", "hour(to_time(h, 'mm:HH'))", "1"),
    ("i IN (0,3,4,5,6,7,8,9,10,11,12)", "i IN (1,3,4,5,6,7,8,9,10,11,12)", "true"),
]  # fmt: skip
"""An expression that is indexed, one that differs from it in a literal, and a value of that one."""


@pytest.fixture(scope="module")
def carriers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProofCase]:
    case = ProofCase(spark, tmp_path_factory.mktemp("carriers")).write_sql(*(
        f"SELECT {i} i, '{s}' s, named_struct('p', {p}) st, '{h}' h, "
        "timestamp'2024-01-01 00:00:00' ts"
        for i, s, p, h in ((0, "AA", "0", "12:01"), (1, "DL", "CAST(NULL AS int)", "01:12"),
                           (2, "ZZ", "1", "05:06"))
    ))  # fmt: skip
    with under(spark, {"spark.sql.timeType.enabled": "true"}):
        kept = [pair[0] for pair in PAIRS]
        case.index(lambda builder: _all_of(builder, kept))
        yield case


def _all_of(builder: IndexBuilder, texts: Sequence[str]) -> IndexBuilder:
    for text in texts:
        builder = builder.add_expression("VALUE_SET", text)
    return builder


@pytest.mark.parametrize(("indexed", "asked", "value"), PAIRS)
def test_expression_that_differs_in_a_literal_keeps_its_rows(carriers, indexed, asked, value):
    with under(carriers.spark, {"spark.sql.timeType.enabled": "true"}):
        for condition in (f"({asked}) = {value}", f"NOT (({asked}) = {value})"):
            carriers.kept(condition)
        assert carriers.kept(f"({indexed}) IS NULL") < 3


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("spark.sql.jsonGenerator.ignoreNullFields", "false", "to_json(st)"),
        ("spark.sql.legacy.truncateForEmptyRegexSplit", "true", "split(s, '', 2)[1]"),
        (
            "spark.sql.columnNameOfCorruptRecord",
            "c",
            "to_json(from_json(s, 'c string, _corrupt_record string'))",
        ),
        (
            "spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv",
            "true",
            "to_csv(named_struct('a', nullif(i, 1), 'b', s))",
        ),
        ("spark.sql.legacy.collationAwareHashFunctions", "true", "hash(s COLLATE UTF8_LCASE)"),
        ("spark.sql.legacy.sizeOfNull", "false", "size(if(i = 1, NULL, array(i)))"),
        ("spark.sql.session.timeZone", "Asia/Kolkata", "CAST(ts AS string)"),
    ],
)
def test_index_of_other_settings_loses_no_row(case, name, value, text):
    case.write_sql(*(
        f"SELECT {i} i, '{s}' s, named_struct('p', nullif({i}, 1)) st, "
        f"timestamp'2024-01-0{i + 1}' ts"
        for i, s in enumerate(("aBc", "xYz", "{{{"))
    ))  # fmt: skip
    text = as_text(text)
    case.index(lambda builder: builder.add_expression("VALUE_SET", text))
    frame = case.read()
    with setting(case.spark, name, value):
        now = questions(frame, [text])
        assert now
        for condition in now:
            assert case.kept(condition.text) == 3
    for condition in questions(frame, [text]):
        assert case.kept(condition.text) < 3


@pytest.mark.parametrize("indexed_under", ["false", "true"])
@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        (
            "spark.sql.legacy.truncateForEmptyRegexSplit",
            "split(s, '', 2)[1]",
            ("'yz'", "'y'"),
        ),
        (
            "spark.sql.jsonGenerator.ignoreNullFields",
            "to_json(named_struct('p', nullif(s, s)))",
            ("'{}'", """'{"p":null}'"""),
        ),
    ],
)
def test_settings_that_change_between_two_collects_lose_no_row(
    case: ProofCase, name: str, text: str, values: Sequence[str], indexed_under: str
) -> None:
    case.write_sql("SELECT 'abc' s", "SELECT 'xyz' s")
    with setting(case.spark, name, indexed_under):
        case.index(lambda builder: builder.add_expression("VALUE_SET", text))

    def collected_twice(value: str) -> list[list[Row]]:
        frame = case.read().where(f"{text} = {value}")
        found = []
        for each in ("false", "true", "false"):
            with setting(case.spark, name, each):
                found.append(sorted(frame.collect()))
        return found

    with skipping_by(case.spark, case.location):
        for value in values:
            on = collected_twice(value)
            with without_skipping(case.spark):
                assert on == collected_twice(value)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("function", sampled(FUNCTIONS, 45))
def test_expressions_that_differ_in_a_literal_have_different_keys(numbers, spark, function):
    frame = numbers.frame(spark)
    for family in families(frame, function):
        kept, *others = keys(frame, family.members)
        equal = [text for text, key in zip(family.members[1:], others, strict=True) if key == kept]
        assert not kept or all(
            are_one_to_spark(frame, family.members[0], text) for text in equal
        ), f"{family.members[0]} has the key of {equal}"


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> ProofTable:
    return numbered_files(tmp_path_factory.mktemp("numbers") / "t")


@pytest.mark.slow
@pytest.mark.parametrize("seed", ROUNDS)
def test_literals_and_settings_that_change_after_the_build_lose_no_row(
    spark: SparkSession,
    tmp_path: Path,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    cases, dropped, droppable = _fuzzed(spark, tmp_path, seed)
    share = dropped / max(droppable, 1)
    record_property("cases", cases)
    record_property("share", round(share, 2))
    show_progress(f"{seed}: {cases} comparisons, {share:.2f} of a perfect index")
    assert share > 0.2, "hardly anything is skipped"


def _fuzzed(spark: SparkSession, folder: Path, seed: int) -> tuple[int, int, int]:
    rng = random.Random(f"expressions {seed}")
    table = numbered_files(folder / "t")
    frame = table.frame(spark)
    chosen = [*rng.sample(NAMES, 10), *rng.sample(sorted(FURTHER), 3)]
    built = _some_settings(rng)
    drawn = indexable(frame, [each for name in chosen for each in families(frame, name)])
    with under(spark, built):  # an expression that fails for every file has no index
        drawn = [each for each in drawn if questions(frame, each.members[:1])]
    kept = [as_text(family.members[0]) for family in drawn]
    indexes = tuple(IndexOf("VALUE_SET", ("i",), text) for text in kept)
    with under(spark, built):
        location = FolderHome(folder).build(spark, table, IndexSet("EXPRESSION", indexes))
    cases = dropped = droppable = 0
    for asked in (built, built | HARMLESS, _some_settings(rng), {}):
        with under(spark, asked):
            texts = [text for family in drawn for text in family.members[:4]]
            conditions = questions(frame, texts)
            needs = needed_files(spark, table, conditions)
            usable = [each for each in conditions if each.text in needs]
            is_same = {**asked, **HARMLESS} == {**built, **HARMLESS}
            verdict = judge(
                spark, table, location, usable, needs,
                lambda each, is_same=is_same: is_same and bool(each.about & set(kept)),
            )  # fmt: skip
            assert not verdict.lost, (seed, built, asked, verdict.lost[0])
        cases += verdict.cases
        dropped += verdict.dropped
        droppable += verdict.droppable
    return cases, dropped, droppable


def _some_settings(rng: random.Random) -> dict[str, str]:
    return {name: SETTINGS[name] for name in rng.sample(sorted(SETTINGS), rng.choice([0, 1, 3]))}


def test_keys_of_version_1_are_not_used_until_they_are_built_again(case, monkeypatch, caplog):
    case.write_sql("SELECT 'ab' s", "SELECT 'xy' s")
    with monkeypatch.context() as patch:
        patch.setattr(definition, "_EXPRESSION", definition._EXPRESSION_BEFORE)
        case.index(lambda builder: builder.add_expression("VALUE_SET", "upper(s)"))
    command = f"build it again with `snaploom index refresh file:{case.path}`"
    assert case.kept("upper(s) = 'AB'") == 2
    assert command in caplog.text
    (found,) = case.indexes.list()
    assert command in found.problem
    case.refresh()
    assert case.kept("upper(s) = 'AB'") == 1
    assert not case.indexes.list()[0].problem


def test_old_way_to_write_literals_would_lose_rows(case, monkeypatch):
    def opaque(value: object, data_type: str) -> expressions.Literal:
        is_shown = not isinstance(value, list | dict)
        return written(value if is_shown else {"opaque": True}, data_type)

    written = expressions.literal
    monkeypatch.setattr(expressions, "literal", opaque)
    case.write_sql("SELECT 'AA' s", "SELECT 'DL' s")
    indexed, asked, value = PAIRS[0]
    case.index(lambda builder: builder.add_expression("VALUE_SET", indexed))
    with pytest.raises(AssertionError, match="off"):
        case.kept(f"{asked} = {value}")
