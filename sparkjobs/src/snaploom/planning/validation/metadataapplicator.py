"""MetadataApplicator: its regular expressions compile."""

from __future__ import annotations

from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.planning.commonchecks.fields import Findings, regex_findings
from snaploom.planning.commonchecks.scope import Scope


def applicator_findings(applicator: MetadataApplicator, scope: Scope) -> Findings:
    """Everything that is wrong with one applicator by itself."""
    patterns = (
        pattern
        for index, selector in enumerate(applicator.spec.field_selectors)
        for pattern in (
            (
                f"spec.fieldSelectors[{index}].coordinateIncludeRegex",
                selector.coordinate_include_regex,
            ),
            (
                f"spec.fieldSelectors[{index}].coordinateExcludeRegex",
                selector.coordinate_exclude_regex,
            ),
        )
    )
    findings, _ = regex_findings(patterns, applicator, scope.judge_text)
    return findings
