"""Findings about SQL of declarations that apply in every place."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.common import Resource
from snaploom.models.findings import Finding, make_finding
from snaploom.policy.fields import Findings
from snaploom.policy.references import Scope
from snaploom.policy.sqlfunctions import CHANGES_ROWS, REASONS, Determinism, hint_for, refusal_of
from snaploom.policy.sqltext import SqlFacts, SqlFault, SqlForm, SqlText

_EXPECTED = {
    SqlForm.QUERY: "a SELECT in Spark SQL",
    SqlForm.EXPRESSION: "an expression in Spark SQL, such as lower(name)",
    SqlForm.CONDITION: "a condition, such as amount > 0",
}


def facts_or_findings(
    text: str,
    form: SqlForm,
    owner: Resource,
    path: str,
    scope: Scope,
    refused: frozenset[Determinism] = CHANGES_ROWS,
) -> tuple[SqlFacts | None, Findings]:
    """The facts of a text, or the finding why it has none.

    `refused` are the dependences that its result may not have.
    """
    verdict = scope.judge_text(SqlText(text, form))
    if isinstance(verdict, SqlFault):
        return None, (
            make_finding(
                "SL150",
                f"this is not valid Spark SQL: {verdict.message}",
                resource=owner.identity,
                path=path,
                found=verdict.found or shortened(text),
                expected=_EXPECTED[form],
            ),
        )
    return verdict, (
        *function_findings(verdict, owner, path, scope),
        *_varying_findings(verdict, owner, path, refused),
    )


def expression_findings(
    text: str,
    owner: Resource,
    path: str,
    scope: Scope,
    *,
    aggregate: bool = False,
    refused: frozenset[Determinism] = CHANGES_ROWS,
) -> tuple[SqlFacts | None, Findings]:
    """An expression over the columns of a row (or of all rows), with its findings."""
    facts, findings = facts_or_findings(text, SqlForm.EXPRESSION, owner, path, scope, refused)
    if facts is None:
        return None, findings
    beyond = facts.beyond_aggregate if aggregate else facts.beyond_expression
    return facts, (
        *clause_findings(beyond, "an expression over columns", owner, path),
        *findings,
    )


def clause_findings(
    beyond: Iterable[str], expected: str, owner: Resource, path: str, hint: str = ""
) -> Findings:
    """A finding when SQL has a clause that its place does not allow."""
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


def function_findings(facts: SqlFacts, owner: Resource, path: str, scope: Scope) -> Findings:
    """A finding when SQL calls a function that is not on the list of functions."""
    refused = {name: reason for name in facts.calls if (reason := refusal_of(name, scope.allow))}
    if not refused:
        return ()
    name, reason = next(iter(refused.items()))
    return (
        make_finding(
            "SL151",
            f"the function {name} is not allowed: {reason}",
            resource=owner.identity,
            path=path,
            found=", ".join(refused),
            expected="functions of the list in docs/reference/sql-functions.md",
            hint=f"leave it out, or have it added to the list 'functions' (chart value "
            f"allow.functions, or --allow functions={name})",
        ),
    )


def _varying_findings(
    facts: SqlFacts, owner: Resource, path: str, refused: frozenset[Determinism]
) -> Findings:
    varying = (
        (Determinism.RANDOM, facts.of_chance),
        (Determinism.SESSION, facts.of_session),
    )
    return tuple(
        make_finding(
            "SL156",
            f"this SQL gives other rows when it is computed again: {found[0]}, because "
            f"{REASONS[determinism]}",
            resource=owner.identity,
            path=path,
            found=", ".join(found),
            expected="SQL whose result depends only on the values of its columns",
            hint=hint_for(found, determinism),
        )
        for determinism, found in varying
        if found and determinism in refused
    )


def order_findings(facts: SqlFacts, owner: Resource, path: str) -> Findings:
    """A warning when the result of a query depends on the order of rows."""
    if not facts.of_order:
        return ()
    return (
        make_finding(
            "SL157",
            f"two runs over the same rows may publish other values: {facts.of_order[0]}, because "
            f"{REASONS[Determinism.ORDER]}",
            resource=owner.identity,
            path=path,
            found=", ".join(facts.of_order),
            expected="a result that does not depend on the order of rows",
            hint=hint_for(facts.of_order, Determinism.ORDER),
        ),
    )


def table_findings(
    facts: SqlFacts, aliases: Iterable[str], owner: Resource, path: str
) -> list[Finding]:
    """A finding for every table that a query reads besides its declared aliases."""
    declared = tuple(aliases)
    folded, expected = {alias.lower() for alias in declared}, " or ".join(declared)
    return [
        make_finding(
            "SL152",
            f"the query reads {table}, which is not declared",
            resource=owner.identity,
            path=path,
            found=table,
            expected=expected,
        )
        for table in facts.tables
        if table.lower() not in folded
    ]


def shortened(text: str) -> str:
    """A query on one line, no longer than a line of a message."""
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:100]}..."
