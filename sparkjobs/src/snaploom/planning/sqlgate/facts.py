"""Columns, calls and clauses of a SQL text as plain data: the one form in which SQL is judged.

Facts are small and can be pickled: the operator has them made by processes that it can kill, and
keeps them by text. Validation sees facts only, never a parser's tree. They are made in
`parsedfacts`, which is imported with the first text: declarations without SQL need no parser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from snaploom import ondemand
from snaploom.planning.sqlgate.lexer import SPARK


class SqlForm(StrEnum):
    """How a text is read."""

    QUERY = "QUERY"
    EXPRESSION = "EXPRESSION"
    """One expression over columns."""
    CONDITION = "CONDITION"
    """One condition over the columns of a table, which a database evaluates."""


@dataclass(frozen=True, slots=True)
class SqlText:
    """A text of a declaration, and how it is read."""

    text: str
    form: SqlForm
    dialect: str = SPARK
    """Whose SQL it is, by sqlglot's name; of a condition it is the database's."""
    added: tuple[str, ...] = ()
    """Functions that an administrator added to those that a condition may call."""


@dataclass(frozen=True, slots=True)
class SqlFacts:
    """Facts extracted from one SQL text."""

    statement: str
    """Kind of the statement, such as SELECT or INSERT."""
    is_query: bool
    """Whether it is a SELECT, or several that are united."""
    tables: tuple[str, ...]
    """Tables that it reads, names of its own WITH clauses left out where these are in scope."""
    has_source: bool
    """Whether it reads any table, its own names included."""
    columns: tuple[str, ...]
    """Columns that it reads, as paths with the case of the text, odd names in backticks."""
    calls: tuple[str, ...]
    """Functions that it calls, as dotted names in lower case, as the text has them."""
    selects: tuple[str, ...] | None
    """Names of the columns that it returns; None with a star."""
    aliases: tuple[str, ...]
    """Names that it gives by AS, and that the rest of it may read as columns."""
    beyond_query: tuple[str, ...]
    """Parts that no query may have: programs that rows are sent through, other versions."""
    beyond_simple: tuple[str, ...]
    """Parts beyond SELECT, WHERE and GROUP BY over one table, as people call them."""
    beyond_aggregate: tuple[str, ...]
    """Parts beyond an expression over the rows of one table."""
    has_aggregate: bool
    data_type: str
    """Type of an expression, as far as its text shows; empty where it does not."""
    of_session: tuple[str, ...] = ()
    """Parts that depend on the time, the user or the session, as people write them."""
    of_chance: tuple[str, ...] = ()
    """Parts that depend on chance, or on where Spark computes a row."""
    of_order: tuple[str, ...] = ()
    """Parts that depend on the order in which Spark comes across rows."""

    @property
    def beyond_expression(self) -> tuple[str, ...]:
        """Parts beyond an expression over the columns of one row."""
        aggregates = ("an aggregate function",) if self.has_aggregate else ()
        return (*aggregates, *self.beyond_aggregate)

    @property
    def folded_columns(self) -> frozenset[str]:
        """The columns that it reads, ignoring case."""
        return frozenset(name.casefold() for name in self.columns)

    def columns_besides(self, name: str) -> tuple[str, ...]:
        """Columns that it reads, but for one and its parts."""
        return tuple(sorted(path for path in self.columns if path.casefold().split(".")[0] != name))


@dataclass(frozen=True, slots=True)
class SqlFault:
    """Why a text is no SQL that can be accepted."""

    message: str
    found: str = ""


SqlVerdict = SqlFacts | SqlFault
SqlJudge = Callable[[SqlText], SqlVerdict]
"""Judges texts: at once, or by a judgement received from another process."""


def judge(text: SqlText) -> SqlVerdict:
    """The facts of a text, or why it has none; never an exception."""
    return ondemand.judge_sql(text)
