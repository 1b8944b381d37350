"""Findings: errors and warnings about declarations, in one shape for every caller."""

from collections.abc import Iterable
from enum import StrEnum

from snaploom.confidential import without_secrets
from snaploom.errors import SnaploomError, problems
from snaploom.models.base import ApiModel


class Severity(StrEnum):
    """Whether a finding stops the work."""

    ERROR = "ERROR"
    """The work cannot go on."""
    WARNING = "WARNING"
    """The work goes on."""


class Finding(ApiModel):
    """One error or warning, its place, and its fix."""

    code: str
    """Stable code, `SL` and three digits; `problems.toml` has its entry."""
    severity: Severity
    """ERROR stops the work, WARNING does not."""
    resource: str
    """`Kind/name`; empty when the fault is in a file before any resource could be read."""
    path: str = ""
    """Field path inside the resource, such as `spec.dataModel.maxDepth`."""
    message: str
    """The fault, one sentence."""
    hint: str = ""
    """The fix."""
    found: str = ""
    """The value found, as the user would recognise it."""
    expected: str = ""
    """The correct form."""
    file: str = ""
    """The file, as the user named it; empty when it came from a cluster."""
    line: int = 0
    """Line in the file, from 1; 0 when unknown."""
    column: int = 0
    """Column in the line, from 1; 0 when unknown."""

    @property
    def is_error(self) -> bool:
        """Whether this finding stops the work."""
        return self.severity is Severity.ERROR

    @property
    def place(self) -> str:
        """File with line and column, resource and field path, as far as they are known."""
        file = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return " ".join(part for part in (file, self.resource, self.path) if part)


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Only the findings that stop the work."""
    return tuple(finding for finding in findings if finding.is_error)


class InvalidDeclarations(SnaploomError, reason="Invalid"):
    """Declarations that cannot be worked with; carries every finding, not only the first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        errors = errors_of(self.findings)
        only = errors[0] if len(errors) == 1 else None
        super().__init__(
            "; ".join(f"{f.place}: {f.message}".removeprefix(": ") for f in errors),
            found=only.found if only and only.found else None,
            expected=only.expected if only and only.expected else None,
            hint=only.hint if only else None,
        )


class NoUniqueJoinTree(InvalidDeclarations):
    """Every error is an ambiguous or an unreachable join tree."""


AMBIGUOUS = "SL301"
"""A source has several equally good ways to be joined."""
UNREACHABLE = "SL302"
"""No path leads to a source whose pathMissingMode is ERROR."""
TREE_CODES = frozenset({AMBIGUOUS, UNREACHABLE})
"""Codes of an ambiguous or unreachable join tree, which have an exit code of their own."""


def refuse(findings: Iterable[Finding]) -> None:
    """Stop if anything among the findings is an error."""
    listed = tuple(findings)
    errors = errors_of(listed)
    if not errors:
        return
    if all(error.code in TREE_CODES for error in errors):
        raise NoUniqueJoinTree(listed)
    raise InvalidDeclarations(listed)


def exit_code_of(findings: Iterable[Finding]) -> int:
    """0 without errors, 3 when every error is an ambiguous or unreachable join tree, else 2."""
    try:
        refuse(findings)
    except InvalidDeclarations as refusal:
        return refusal.exit_code
    return 0


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
    """Return a finding, with the fix of its code where there is no `hint`.

    `severity` is only for codes whose severity the caller decides.
    """
    problem = problems()[code]
    if problem.severity != "EITHER":
        severity = Severity(problem.severity)
    assert severity is not None, f"{code} needs a severity"
    return Finding(
        code=code,
        severity=severity,
        resource=resource,
        path=path,
        message=without_secrets(message),
        hint=hint or problem.fix,
        found=without_secrets(found),
        expected=expected,
    )
