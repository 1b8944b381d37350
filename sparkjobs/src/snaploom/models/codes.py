"""Every code that a finding can have, with its meaning, severity and fix.

Codes are stable: a number is never given a second meaning. SL10x to SL12x come from reading files
and resources, SL13x to SL18x from validation, SL19x from what is asked for, SL30x from planning.
Severity belongs to the code; only where `severity` is None does the caller decide.
"""

from __future__ import annotations

from snaploom.confidential import without_secrets
from snaploom.models.catalogue.inputs import READING
from snaploom.models.catalogue.outputs import OUTPUTS
from snaploom.models.catalogue.plans import PLANNING
from snaploom.models.catalogue.requests import ASKING
from snaploom.models.catalogue.sources import SOURCES
from snaploom.models.finding import Finding, Severity

CODES = (*READING, *SOURCES, *OUTPUTS, *ASKING, *PLANNING)

CODE_BY_ID = {code.code: code for code in CODES}


def make_finding(
    code: str,
    message: str,
    *,
    resource: str = "",
    path: str = "",
    found: str = "",
    expected: str = "",
    hint: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A finding with the severity of its code.

    Without `hint` the catalogue's is used; `severity` is only for codes whose severity the caller
    decides.
    """
    catalogued = CODE_BY_ID[code]
    grave = catalogued.severity or severity
    assert grave is not None, f"{code} needs a severity"
    return Finding(
        code=code,
        severity=grave,
        resource=resource,
        path=path,
        message=without_secrets(message),
        hint=hint or catalogued.fix,
        found=without_secrets(found),
        expected=expected,
    )
