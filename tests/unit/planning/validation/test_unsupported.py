"""What is not built yet is one clear finding: an error to run, a warning to validate."""

from __future__ import annotations

from typing import Any

import pytest
from support.declarations import model, output, parsed

from snaploom.models.finding import InvalidDeclarations
from snaploom.planning.bundling import bundle_for
from snaploom.planning.validation.unsupported import unsupported
from snaploom.planning.validation.validator import validate


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("outputFolder.dataFormat", "ICEBERG"),
    ],
)
def test_settings_that_are_not_built_are_refused(change: str, value: Any) -> None:
    resources = parsed([*model()[:-1], output(**{change: value})])
    (error,) = unsupported(bundle_for("OutputDataset", "wide", resources))
    assert (error.code, error.severity) == ("SL190", "ERROR")
    assert error.path.startswith(f"spec.{change}")
    (warning,) = validate(resources)
    assert (warning.code, warning.severity, warning.path) == ("SL190", "WARNING", error.path)


def test_retention_rules_are_built() -> None:
    rules: Any = {"maxSnapshotAge": {"day": 9}, "maxSnapshotCreationAge": {"day": 9}}
    tiers = [{"olderThan": {"day": 1}, "keepOneEvery": {"week": 1}}]
    rules |= {"maxOldSnapshots": 3, "tiers": tiers}
    change = {"outputFolder.snapshotAutoDelete": rules}
    resources = parsed([*model()[:-1], output(**change)])
    assert unsupported(bundle_for("OutputDataset", "wide", resources)) == ()


def test_an_unknown_output_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidDeclarations) as raised:
        bundle_for("OutputDataset", "wyde", parsed(model()))
    (finding,) = raised.value.findings
    assert (finding.code, finding.hint) == ("SL191", "did you mean `wide`?")
