"""FieldTransformer: expressions parse, replacements refer to groups, ranges are sound."""

from __future__ import annotations

import re
from collections.abc import Iterator

from snaploom.models.codes import make_finding
from snaploom.models.fieldtransformer import FieldTransformer, Rename, Transformer
from snaploom.models.finding import Finding
from snaploom.planning.commonchecks.fields import (
    Findings,
    range_findings,
    regex_findings,
)
from snaploom.planning.commonchecks.queries import expression_findings
from snaploom.planning.commonchecks.scope import Scope

_GROUP = re.compile(r"\$([0-9]+)")


def transformer_findings(resource: FieldTransformer, scope: Scope) -> Findings:
    """Everything that is wrong with one transformer by itself."""
    transformers = [
        (f"spec.transformers[{index}]", transformer)
        for index, transformer in enumerate(resource.spec.transformers)
    ]
    patterns = [pattern for path, each in transformers for pattern in _patterns(each, path)]
    invalid, groups = regex_findings(patterns, resource, scope.judge_text)
    return (
        *invalid,
        *(
            finding
            for path, transformer in transformers
            for finding in _findings(transformer, resource, path, scope)
        ),
        *(
            finding
            for path, transformer in transformers
            if transformer.rename is not None and f"{path}.rename.pattern" in groups
            for finding in _replacement(
                transformer.rename,
                groups[f"{path}.rename.pattern"],
                resource,
                f"{path}.rename",
            )
        ),
    )


def _patterns(transformer: Transformer, path: str) -> Iterator[tuple[str, str | None]]:
    for index, selector in enumerate(transformer.selectors):
        at = f"{path}.selectors[{index}]"
        yield f"{at}.coordinateIncludeRegex", selector.coordinate_include_regex
        yield f"{at}.coordinateExcludeRegex", selector.coordinate_exclude_regex
    if transformer.rename is not None:
        yield f"{path}.rename.pattern", transformer.rename.pattern


def _findings(
    transformer: Transformer, owner: FieldTransformer, path: str, scope: Scope
) -> list[Finding]:
    findings: list[Finding] = []
    if transformer.expression is not None:
        sql, at = transformer.expression.sql, f"{path}.expression.sql"
        findings.extend(_expression(sql, owner, at, scope))
    if transformer.rename is None and not transformer.replace_inputs:
        findings.append(_beside(transformer, owner, path))
    if transformer.snapshot_range is not None:
        snapshots = transformer.snapshot_range
        findings.extend(
            range_findings(snapshots.from_, snapshots.to, owner, f"{path}.snapshotRange")
        )
    return findings


def _replacement(rename: Rename, groups: int, owner: FieldTransformer, path: str) -> Findings:
    named = [int(number[:4]) for number in _GROUP.findall(rename.replacement or "")]
    if not any(number > groups for number in named):
        return ()
    return (
        make_finding(
            "SL131",
            "the replacement refers to a group that the pattern does not have",
            resource=owner.identity,
            path=f"{path}.replacement",
            found=f"${max(named)}",
            expected=f"at most {groups} group{'' if groups == 1 else 's'}",
            hint="put what is to be kept of the name into parentheses in the pattern",
        ),
    )


def _beside(transformer: Transformer, owner: FieldTransformer, path: str) -> Finding:
    change = Transformer.variant_of(transformer)
    return make_finding(
        "SL165",
        f"{change} gives no field of another name, so that it cannot stand beside its input",
        resource=owner.identity,
        path=f"{path}.replaceInputs",
        found="false",
        expected="true",
        hint="copy the field by a rename with replaceInputs false, and change the copy",
    )


def _expression(sql: str, owner: FieldTransformer, path: str, scope: Scope) -> Findings:
    facts, findings = expression_findings(sql, owner, path, scope)
    if facts is None:
        return findings
    others = facts.columns_besides("value")
    if others:
        unknown = make_finding(
            "SL163",
            "the expression may read `value` only, the field's own value",
            resource=owner.identity,
            path=path,
            found=", ".join(others),
            expected="value",
            hint="write `value` for the field; an expression over several columns belongs in a "
            "query of a simpleVirtual source",
        )
        return (*findings, unknown)
    return findings
