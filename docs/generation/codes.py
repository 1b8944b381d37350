"""The page of findings, from the catalogue itself."""

from __future__ import annotations

from generation.markdown import NOTE
from generation.reasons import linked, reasons_of
from generation.samples import FindingSample, finding_samples
from snaploom.models.codes import CODES
from snaploom.models.findings import Code

_PREFLIGHT = "SL192"


def findings_page() -> str:
    """The page of the codes of findings."""
    parts = [
        "# Findings\n",
        NOTE,
        "What `snaploom validate`, `plan` and `run` and the admission webhook can find in "
        "declarations. Codes are stable. Each has the smallest input that causes it, in "
        "`docs/samples/findings` too.\n",
    ]
    samples = finding_samples()
    for code in CODES:
        severity = code.severity or "ERROR or WARNING"
        parts.append(
            f"## {code.code}: {code.title}\n\n{severity}. {code.meaning}\n\n**Fix**: {code.fix}"
            f"{_in_a_cluster(code)}\n\n{_example(samples[code.code])}\n"
        )
    return "\n".join(parts)


def _example(sample: FindingSample) -> str:
    """The input, folded away; `yml` because it is wrong by design, unlike `yaml` elsewhere."""
    given = (
        f'```yml title="{sample.file.name}"\n{sample.text}```'
        if sample.file
        else f"```text\n$ {sample.command}\n```"
    )
    return f"<details markdown>\n<summary>Smallest input</summary>\n\n{given}\n\n</details>"


def _in_a_cluster(code: Code) -> str:
    """Where a finding leads to a reason of its own, a link to it."""
    if code.code == _PREFLIGHT:
        return "\n\nReasons: [Troubleshooting](../operating/troubleshooting.md)."
    reasons = ", ".join(linked(reason, "../") for reason in reasons_of(code))
    return f"\n\nIn a cluster: {reasons}." if reasons else ""
