"""FieldTransformer: expressions parse, replacements refer to groups, ranges are sound."""

from __future__ import annotations

import re

from snaploom.models.codes import make_finding
from snaploom.models.fieldtransformer import FieldTransformer, Rename, Transformer
from snaploom.models.finding import Finding
from snaploom.planning.validation.fields import (
    Findings,
    compiled_groups,
    range_findings,
    regex_findings,
)
from snaploom.planning.validation.queries import expression_findings
from snaploom.planning.validation.sql import columns_besides

_GROUP = re.compile(r"\$([0-9]+)")


def transformer_findings(resource: FieldTransformer) -> Findings:
    """Everything that is wrong with one transformer by itself."""
    return tuple(
        finding
        for index, transformer in enumerate(resource.spec.transformers)
        for finding in _findings(transformer, resource, f"spec.transformers[{index}]")
    )


def _findings(transformer: Transformer, owner: FieldTransformer, path: str) -> list[Finding]:
    findings: list[Finding] = []
    for index, selector in enumerate(transformer.selectors):
        at = f"{path}.selectors[{index}]"
        include, exclude = selector.coordinate_include_regex, selector.coordinate_exclude_regex
        findings.extend(regex_findings(include, owner, f"{at}.coordinateIncludeRegex"))
        findings.extend(regex_findings(exclude, owner, f"{at}.coordinateExcludeRegex"))
    if transformer.rename is not None:
        findings.extend(_rename(transformer.rename, owner, f"{path}.rename"))
    if transformer.expression is not None:
        findings.extend(_expression(transformer.expression.sql, owner, f"{path}.expression.sql"))
    if transformer.rename is None and not transformer.replace_inputs:
        findings.append(_beside(transformer, owner, path))
    if transformer.snapshot_range is not None:
        snapshots = transformer.snapshot_range
        findings.extend(
            range_findings(snapshots.from_, snapshots.to, owner, f"{path}.snapshotRange")
        )
    return findings


def _rename(rename: Rename, owner: FieldTransformer, path: str) -> Findings:
    findings = regex_findings(rename.pattern, owner, f"{path}.pattern")
    if findings or rename.pattern is None:
        return findings
    groups = compiled_groups(rename.pattern)
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


def _expression(sql: str, owner: FieldTransformer, path: str) -> Findings:
    parsed, findings = expression_findings(sql, owner, path)
    if parsed is None:
        return findings
    strangers = columns_besides(parsed, "value")
    if strangers:
        unknown = make_finding(
            "SL163",
            "the expression may read `value` only, the field's own value",
            resource=owner.identity,
            path=path,
            found=", ".join(strangers),
            expected="value",
        )
        return (*findings, unknown)
    return findings
