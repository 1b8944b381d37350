"""Findings about user SQL: what every place has in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.resource import Resource
from snaploom.planning.validation.fields import Findings
from snaploom.planning.validation.sql import (
    SqlInvalid,
    beyond_aggregate,
    beyond_expression,
    forbidden_functions,
    parse_expression,
    tables_read,
)


def parsed_or_findings(
    parse: Callable[[str], exp.Expr], text: str, owner: Resource, path: str
) -> tuple[exp.Expr | None, Findings]:
    """The parsed SQL, or the finding that says why it is none."""
    try:
        return parse(text), ()
    except SqlInvalid as error:
        return None, (
            make_finding(
                "SL150",
                f"this is not valid Spark SQL: {error}",
                resource=owner.identity,
                path=path,
                found=shortened(text),
            ),
        )


def expression_findings(
    text: str, owner: Resource, path: str, *, aggregate: bool = False
) -> tuple[exp.Expr | None, Findings]:
    """An expression over the columns of a row (or of all rows), with what is wrong with it."""
    parsed, findings = parsed_or_findings(parse_expression, text, owner, path)
    if parsed is None:
        return None, findings
    beyond = beyond_aggregate(parsed) if aggregate else beyond_expression(parsed)
    return parsed, (
        *clause_findings(beyond, "an expression over columns", owner, path),
        *function_findings(parsed, owner, path),
    )


def clause_findings(
    beyond: Iterable[str], expected: str, owner: Resource, path: str, hint: str = ""
) -> Findings:
    """A finding when SQL has what its place does not allow."""
    named = ", ".join(beyond)
    if not named:
        return ()
    return (
        make_finding(
            "SL151",
            f"this SQL may not have {named}",
            resource=owner.identity,
            path=path,
            found=named,
            expected=expected,
            hint=hint,
        ),
    )


def function_findings(parsed: exp.Expr, owner: Resource, path: str) -> Findings:
    """A finding when SQL calls a function that reaches beyond data."""
    called = forbidden_functions(parsed)
    if not called:
        return ()
    return (
        make_finding(
            "SL151",
            f"the function {called[0]} is not allowed: queries may call Spark's own functions, but "
            "none that calls any Java method or reads a file",
            resource=owner.identity,
            path=path,
            found=", ".join(called),
        ),
    )


def table_findings(
    parsed: exp.Expr, aliases: Iterable[str], owner: Resource, path: str
) -> list[Finding]:
    """A finding for every table that a query reads besides its declared aliases."""
    declared = tuple(aliases)
    folded = {alias.casefold() for alias in declared}
    return [
        make_finding(
            "SL152",
            f"the query reads {table}, which is not declared",
            resource=owner.identity,
            path=path,
            found=table,
            expected=" or ".join(declared),
            hint="read the source by its alias, and declare every source that is read",
        )
        for table in tables_read(parsed)
        if table.casefold() not in folded
    ]


def shortened(text: str) -> str:
    """A query on one line, no longer than a line of a message."""
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:100]}..."
