"""MetadataApplicator: its regular expressions compile."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.models.metadataapplicator import CoordinateSelector, MetadataApplicator
from snaploom.models.resource import Resource
from snaploom.planning.validation.fields import Findings, regex_findings


def applicator_findings(applicator: MetadataApplicator) -> Findings:
    """Everything that is wrong with one applicator by itself."""
    return selector_findings(applicator.spec.field_selectors, applicator, "spec.fieldSelectors")


def selector_findings(
    selectors: Sequence[CoordinateSelector], owner: Resource, path: str
) -> Findings:
    """Findings about the expressions of coordinate selectors."""
    return tuple(
        finding
        for index, selector in enumerate(selectors)
        for name, pattern in (
            ("coordinateIncludeRegex", selector.coordinate_include_regex),
            ("coordinateExcludeRegex", selector.coordinate_exclude_regex),
        )
        for finding in regex_findings(pattern, owner, f"{path}[{index}].{name}")
    )
