"""Whatever passes the gate resolves to listed functions and declared relations only.

Judged by an oracle of its own: the JSON that Spark writes of a resolved plan, and a list of what
must not be in it. It shares no code and no list with the gate.
"""

from __future__ import annotations

import random
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.hostile.tpchqueries import spark_functions
from support.runner.proofscope import IS_WHOLE

from snaploom.errors import SourceSchemaInvalid
from snaploom.policy.sqlfunctions import FUNCTIONS
from snaploom.spark import gate
from snaploom.spark.gate import SqlPlace, check_resolved, checked_expression, checked_query
from snaploom.spark.jvm import jvm_of
from snaploom.spark.trees import VALUES

CANARY = "canary-7f3a"
"""What a property of the JVM, a setting (both called so) and a variable hold."""

_SPACES = (
    " ", "\n", "\t", "\r\n", "  ", "\u00a0", "\u2003", "\u200b", "\ufeff", "\u2028", "\x0b",
    "\x0c", "\x1c", "\x85", "\u3000", "",
)  # fmt: skip
_COMMENTS = (
    "/* a */", "/* /* */ {} */", "/* {} */", "-- {}\n", "-- \\\n{}", "--{}\r",
    "/*+ BROADCAST(a) */", "/**/", "/* ", "*/", "--", "/*/ {} /*/", "/* -- */ {} /* */",
    "-- /* \n {} -- */\n", "/*'*/ {} /*'*/", "--\u2028{}\n", "# {}\n", "// {}\n",
    "/* \\*/ {} /* \\*/",
)  # fmt: skip
_QUOTES = (
    "'{}'", '"{}"', "r'{}'", 'R"{}"', "'{}\\'", "'{}''{}'", "\"{}\"\"{}\"", "'\\'{}'", "''{}''",
    "$${}$$", "'{}' '{}'", "N'{}'", "x'{}'", "'\\u0027{}'", "'\\047{}'", "`{}`", "'''{}'''",
    "q'[{}]'", "'{}\\\\'", "r'{}\\'",
)  # fmt: skip
_IDENTIFIERS = (
    "a", "b", "s.x", "`a`", "`s`.`x`", "s", "A", "t.a", "src.a", "`a``b`", "`a.b`", "_metadata",
    "secret", "`secret`", "system.session.v", "v", "a.b.c", "`/etc/passwd`", "src", "*", "\uff41",
    "current_user", "user", "`*`", "1a", "a$b", "@a", ":a", "?", "${system:snaploom.canary}",
    "${spark.canary}", "{a}", "{{a}}", "ª", "ſ", "K",
)  # fmt: skip
_TABLES = (
    "src", "`src`", "SRC", "secret", "text.`/etc/passwd`", "`csv`.`/etc/passwd`", "range(3)",
    "global_temp.secret", "identifier('secret')", "identifier('sec' || 'ret')",
    "(select * from src)", "(values (1, 'b')) v(a, b)", "explode(array(1)) as t(a)",
    "python_worker_logs()", "default.src", "src version as of 1", "src tablesample (50 percent)",
    "stream src", "src with ('a'='b')", "json_table('[]', '$' columns (a int path '$'))",
    "lateral (select 1 as a)", "sql_keywords()", "spark_catalog.default.secret",
    "system.session.secret", "src |> where a > 1", "nosuch(table(src))",
)  # fmt: skip
_BAD = (
    "reflect('java.lang.System', 'getenv', 'PATH')",
    "java_method('java.lang.Runtime', 'getRuntime')", "mine(b)", "session.mine(b)",
    "xpath_string('<!DOCTYPE a SYSTEM \"{url}\"><a/>', 'a')",
    "from_xml('<a/>', 'b INT', map('rowValidationXSDPath', '{url}'))",
    "schema_of_xml('<a/>', map('rowValidationXSDPath', '{url}'))",
    "from_json('[]', schema_of_xml('<a/>', map('rowValidationXSDPath', '{url}')))",
    "identifier('reflect')('java.lang.System', 'getenv', 'PATH')", "(select max(id) from secret)",
    "try_reflect('java.net.URL', 'x')", "from_protobuf(b, 'a', '/etc/passwd')",
    "'${system:snaploom.canary}'", "'${spark.canary}'",
)  # fmt: skip
_OPERATORS = (
    "+", "-", "*", "/", "%", "||", "and", "or", "=", "<=>", "<>", "<", ">=", "&", "|", "^", "<<",
    ">>", "div", "is distinct from", "like", "rlike", "in", "between", "::", ".", "[", "->", "=>",
    ";", ",",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=\s*\()")
_WORD = re.compile(r"\s+")


@dataclass(frozen=True)
class Text:
    text: str
    is_query: bool


def fuzzed(seed: int, statements: Sequence[str], url: str) -> Iterator[Text]:
    """Texts without end; the same for the same arguments.

    Args:
        seed: of chance.
        statements: of Spark's documentation.
        url: where nobody may ask for anything.
    """
    chance = random.Random(seed)
    writer = _Writer(chance, url)
    while True:
        source = chance.random()
        if source < 0.45:
            text = Text(_shaken(chance, writer, chance.choice(statements)), True)
        elif source < 0.75:
            text = Text(writer.expression(chance.randint(0, 4)), False)
        else:
            text = Text(writer.query(chance.randint(0, 3)), True)
        yield Text(_broken(chance, writer, text.text), text.is_query)


def _shaken(chance: random.Random, writer: _Writer, statement: str) -> str:
    """A statement in other clothes: names of functions, spaces and comments exchanged."""
    names = list(FUNCTIONS)

    def renamed(match: re.Match[str]) -> str:
        if chance.random() < 0.06:
            return writer.spelt(chance.choice(names))
        return writer.spelt(match[0]) if chance.random() < 0.3 else match[0]

    def spaced(match: re.Match[str]) -> str:
        return writer.space() if chance.random() < 0.1 else match[0]

    return _WORD.sub(spaced, _NAME.sub(renamed, statement))


def _broken(chance: random.Random, writer: _Writer, text: str) -> str:
    """Now and then, something that does not belong there."""
    while chance.random() < 0.25:
        place = chance.randint(0, len(text))
        match chance.randint(0, 3):
            case 0:
                text = text[:place] + writer.comment() + text[place:]
            case 1:
                text = text[:place] + chance.choice(_SPACES) + text[place:]
            case 2:
                text = text[:place] + text[place + chance.randint(1, 3) :]
            case _:
                text = (
                    text[:place]
                    + chance.choice("'\"`\\()[]{}$;:/*-#@\x00\ud800\u202e")
                    + text[place:]
                )
    return text


class _Writer:
    def __init__(self, chance: random.Random, url: str) -> None:
        self._chance = chance
        self._bad = tuple(text.replace("{url}", url) for text in _BAD)
        self._names = tuple(FUNCTIONS)

    def space(self) -> str:
        return self._chance.choice(_SPACES) if self._chance.random() < 0.1 else " "

    def comment(self) -> str:
        inner = self._chance.choice((*self._bad, "a", "")) if self._chance.random() < 0.7 else ""
        return self._chance.choice(_COMMENTS).replace("{}", inner)

    def spelt(self, name: str) -> str:
        """A function's name in one of many spellings."""
        forms: tuple[Callable[[], str], ...] = (
            lambda: name,
            lambda: name.upper(),
            lambda: "".join(self._chance.choice((c, c.upper())) for c in name),
            lambda: f"`{name}`",
            lambda: f"system.builtin.{name}",
            lambda: f"builtin.`{name}`",
            lambda: f"`system.builtin.{name}`",
            lambda: f"session.{name}",
            lambda: f"{name}/**/",
            lambda: name.replace("e", "\uff45", 1),
        )
        return name if self._chance.random() < 0.6 else self._chance.choice(forms)()

    def literal(self) -> str:
        pick = self._chance.random()
        if pick < 0.5:
            return str(
                self._chance.choice(
                    (0, 1, 2, -1, "1.5", "1e3", "2L", "1.5BD", ".5", "null", "true")
                )
            )
        inner = self._chance.choice(
            ("x", "a'b", "\\", "it\\'s", "/*", "*/", "--", "${env:PATH}", "{}", "%")
        )
        if pick < 0.6:
            inner = self._chance.choice(self._bad)
        quoted = self._chance.choice(_QUOTES[:6] if pick < 0.9 else _QUOTES)
        return quoted.replace("{}", inner)

    def expression(self, depth: int) -> str:
        chance = self._chance
        if depth == 0:
            return self.literal() if chance.random() < 0.5 else self.column()
        inner = lambda: self.expression(depth - 1)  # noqa: E731
        match chance.randint(0, 11):
            case 0 | 1 | 2:
                arguments = ", ".join(inner() for _ in range(chance.randint(0, 3)))
                return f"{self.spelt(chance.choice(self._names))}({arguments})"
            case 3 | 4:
                return f"{inner()}{self.space()}{chance.choice(_OPERATORS)}{self.space()}{inner()}"
            case 5:
                return f"({inner()})"
            case 6:
                return f"case when {inner()} then {inner()} else {inner()} end"
            case 7:
                return f"transform(array({inner()}), x -> {inner()})[0]"
            case 8:
                kind = chance.choice(
                    ("string", "int", "array<string>", "struct<a:int>", "udt", "date")
                )
                return f"{chance.choice(('cast', 'try_cast'))}({inner()} as {kind})"
            case 9:
                return chance.choice(self._bad) if chance.random() < 0.4 else f"upper({inner()})"
            case 10:
                return f"coalesce({inner()},{self.space()}{self.comment()}{inner()})"
            case _:
                if chance.random() < 0.5:
                    return f"({self.query(depth - 1)})"
                return f"sum({inner()}) over (partition by {inner()} order by {inner()})"

    def column(self) -> str:
        if self._chance.random() < 0.75:
            return self._chance.choice(_IDENTIFIERS[:7])
        return self._chance.choice(_IDENTIFIERS)

    def table(self) -> str:
        return self._chance.choice(_TABLES[:3] if self._chance.random() < 0.7 else _TABLES)

    def query(self, depth: int) -> str:
        chance = self._chance
        text = f"select {self.expression(depth)} as x from {self.table()}"
        if chance.random() < 0.3:
            text += f" where {self.expression(depth)}"
        if chance.random() < 0.1:
            text += (
                f" lateral view {self.spelt(chance.choice(self._names))}({self.column()}) l as y"
            )
        if chance.random() < 0.1:
            text += f" group by {self.column()} having {self.expression(depth)}"
        if chance.random() < 0.1:
            name = chance.choice(("c", "src", "secret"))
            text = f"with {name} as ({text}) select * from {self.table()}"
        if chance.random() < 0.1:
            text = f"{text} {chance.choice(('union', 'except', 'intersect'))} {self.query(0)}"
        return text


pytestmark = [pytest.mark.spark, pytest.mark.slow]

SHARES, COUNT = (20, 5_000) if IS_WHOLE else (1, 1_000)
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


@pytest.mark.timeout(3600 if IS_WHOLE else 600)
@pytest.mark.parametrize("share", range(SHARES))
def test_what_passes_the_gate_is_listed_and_declared(spark, room, statements, share):
    ends: Counter[str] = Counter()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        for text in islice(fuzzed(20260101 + share, statements, url), COUNT):
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
        with pytest.raises(BlockingIOError):  # nobody asked for anything
            listener.accept()
    print(dict(ends))
    assert min(ends["passed"], ends["refused"]) > COUNT // 10


def test_a_gate_without_its_lists_is_found_out(spark, room, statements, monkeypatch):
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
def test_the_oracle_finds_what_spark_without_the_gate_accepts(spark, room, text):
    assert beyond(room.selectExpr(text)) != []
