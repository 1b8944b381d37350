"""Pages of findings, errors and reasons, from the catalogue and the classes themselves."""

from __future__ import annotations

from generation.errorclasses import OPERATOR, ErrorClass, errors
from generation.markdown import NOTE, meanings, table
from generation.reasons import linked, reasons_of
from generation.reasonsamples import ReasonSample, reason_samples
from generation.samples import FindingSample, finding_samples
from snaploom.models.catalogue.code import Code
from snaploom.models.codes import CODES
from snaploom.models.report import ExclusionReason, RunPhase, SnapshotReason

_PREFLIGHT = "SL192"


def findings_page() -> str:
    """The page of the codes of findings."""
    parts = [
        "# Findings\n",
        NOTE,
        "What `snaploom validate`, `plan` and `run` and the admission webhook can find in "
        "declarations. Codes are stable. Each has the smallest input that causes it (in "
        "`docs/samples/findings`), and what is printed then.\n",
    ]
    samples = finding_samples()
    for code in CODES:
        severity = code.severity or "ERROR or WARNING"
        parts.append(
            f"## {code.code}: {code.title}\n\n{severity}. {code.meaning}\n\n**Fix**: {code.fix}"
            f"{_in_a_cluster(code)}\n\n{_example(samples[code.code])}\n"
        )
    return "\n".join(parts)


def reasons_page() -> str:
    """The page of errors and of the reasons in reports and status."""
    parts = [
        "# Reasons\n",
        NOTE,
        "## Errors\n",
        "Reason of a condition, class in Python, and exit code of the command line. An error is "
        "worth trying again when it may go away with nothing changed. Each reason leads to what "
        "to do about it.\n",
        _errors_table(errors()),
        "## Errors of the operator\n",
        "They stand in its log and its metrics, and its commands end with them.\n",
        _errors_table(errors(OPERATOR)),
        "## What is shown\n",
        "For each reason the smallest situation that causes it (in `docs/samples/reasons`), "
        "and the text that the command line prints then. Reports, conditions and logs have the "
        "same sentences.\n",
        *(_situation(sample) for _, sample in sorted(reason_samples().items())),
    ]
    for title, members in (
        ("Why a snapshot is published, left out, or failed", SnapshotReason),
        ("Why a source is not part of a snapshot", ExclusionReason),
        ("How a run ended", RunPhase),
    ):
        parts += [f"## {title}\n", meanings(members)]
    return "\n".join(parts)


def _situation(sample: ReasonSample) -> str:
    """A sample, folded away."""
    text = f"```text\n{sample.text}```\n\n" if sample.text else ""
    return (
        f"<details markdown>\n<summary>{sample.reason}</summary>\n\n{sample.cause}\n\n{text}"
        "</details>\n"
    )


def _errors_table(listed: list[ErrorClass]) -> str:
    columns = ["reason", "error", "worth trying again", "exit code", "meaning"]
    rows = [
        [
            linked(error.reason, "../"),
            f"`{error.name}`",
            "yes" if error.retryable else "no",
            str(error.exit_code),
            error.meaning,
        ]
        for error in listed
    ]
    return table(columns, rows)


def _example(sample: FindingSample) -> str:
    """Input and text, folded away; `yml` because it is wrong by design, unlike `yaml` elsewhere."""
    given = f'```yml title="{sample.file.name}"\n{sample.text}```\n\n' if sample.file else ""
    return (
        f"<details markdown>\n<summary>Smallest input</summary>\n\n{given}"
        f"```text\n$ {sample.command}\n{sample.printed}```\n\n</details>"
    )


def _in_a_cluster(code: Code) -> str:
    """Where a finding leads to a reason of its own, a link to it."""
    if code.code == _PREFLIGHT:
        return "\n\nReasons: [Troubleshooting](../operating/troubleshooting.md)."
    reasons = ", ".join(linked(reason, "../") for reason in reasons_of(code))
    return f"\n\nIn a cluster: {reasons}." if reasons else ""
