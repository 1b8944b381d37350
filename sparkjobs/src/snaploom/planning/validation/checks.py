"""Columns that `checks[]` and `clusterBy` name, as far as they can be judged without data."""

from __future__ import annotations

from snaploom.loading.nearmisses import did_you_mean, listing
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.commonchecks.columns import DATA, undeclared_in_output
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.commonchecks.queries import expression_findings, shortened
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.fieldpaths import split_path
from snaploom.planning.sqlgate.facts import SqlFacts
from snaploom.planning.sqlgate.nondeterminism import CHANGES_VERDICTS

_TRUE_OR_FALSE = ("boolean", "")
"""Types of an expectation; of some the text does not show any, and Spark has the last word."""


def check_findings(output: OutputDataset, scope: Scope) -> Findings:
    """Everything that is wrong with the expectations of an output."""
    fields = _fields(output)
    findings: list[Finding] = []
    for index, check in enumerate(output.spec.checks):
        path = f"spec.checks[{index}].expression"
        facts, wrong = expression_findings(
            check.expression, output, path, scope, aggregate=True, refused=CHANGES_VERDICTS
        )
        findings.extend(wrong)
        if facts is not None and not wrong:
            findings.extend(_not_of_output(output, facts, fields, path))
            findings.extend(_not_declared(output, facts, fields, path, scope))
            findings.extend(_not_boolean(output, facts, check.expression, path))
    return tuple(findings)


def cluster_findings(output: OutputDataset, scope: Scope) -> Findings:
    """Columns of `clusterBy` that the output does not have."""
    fields = _fields(output)
    known = {field.casefold() for field in fields}
    outside = tuple(
        make_finding(
            "SL189",
            "the output has no such column",
            resource=output.identity,
            path=f"spec.outputFolder.clusterBy[{index}]",
            found=name,
            expected=f"columns below {listing(fields)}",
            hint=f"for a column of the root, write {DATA}.{name}",
        )
        for index, name in enumerate(output.spec.output_folder.cluster_by)
        if name.partition(".")[0].strip("`").casefold() not in known
    )
    wrong = {finding.path for finding in outside}
    columns = (
        (f"spec.outputFolder.clusterBy[{index}]", name)
        for index, name in enumerate(output.spec.output_folder.cluster_by)
    )
    undeclared = (
        _undeclared("SL189", output, name, split_path(name) or (), path, scope)
        for path, name in columns
        if path not in wrong
    )
    return (*outside, *(finding for found in undeclared for finding in found))


def _fields(output: OutputDataset) -> tuple[str, ...]:
    return (DATA, *(other.field_name for other in output.spec.data_model.other_data_sources))


def _not_of_output(
    output: OutputDataset, facts: SqlFacts, fields: tuple[str, ...], path: str
) -> list[Finding]:
    known = {field.casefold() for field in fields}
    others = [name for name in facts.columns if name.partition(".")[0].casefold() not in known]
    if not others:
        return []
    return [
        make_finding(
            "SL188",
            "the output has no such column",
            resource=output.identity,
            path=path,
            found=", ".join(others),
            expected=f"columns below {listing(fields)}",
            hint=did_you_mean(others[0].partition(".")[0], fields)
            or f"for a column of the root, write {DATA}.{others[0]}; for one of another "
            "source begin with its fieldName",
        )
    ]


def _not_declared(
    output: OutputDataset, facts: SqlFacts, fields: tuple[str, ...], path: str, scope: Scope
) -> list[Finding]:
    known = {field.casefold() for field in fields}
    return [
        finding
        for name in facts.columns
        if name.partition(".")[0].casefold() in known
        for finding in _undeclared("SL188", output, name, tuple(name.split(".")), path, scope)
    ]


def _undeclared(
    code: str, output: OutputDataset, name: str, parts: tuple[str, ...], path: str, scope: Scope
) -> Findings:
    found = undeclared_in_output(output, parts, scope)
    if found is None:
        return ()
    expected, hint = found
    return (
        make_finding(
            code,
            "the output has no such column",
            resource=output.identity,
            path=path,
            found=name,
            expected=expected,
            hint=hint,
        ),
    )


def _not_boolean(output: OutputDataset, facts: SqlFacts, text: str, path: str) -> list[Finding]:
    if facts.data_type in _TRUE_OR_FALSE:
        return []
    return [
        make_finding(
            "SL188",
            "an expectation must be true or false",
            resource=output.identity,
            path=path,
            found=f"{shortened(text)} is of type {facts.data_type}",
            expected="a comparison, such as count(*) > 0 or data.amount >= 0",
        )
    ]
