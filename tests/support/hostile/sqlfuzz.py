"""Texts that try to be something else to the gate than to Spark: a grammar, and its accidents.

Part of the texts grow from a grammar that knows what parsers dispute about; part are statements of
Spark's documentation, in which names, quotes, comments and spaces are exchanged.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from snaploom.planning.sqlgate.functions import FUNCTIONS

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
    """One text."""

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
