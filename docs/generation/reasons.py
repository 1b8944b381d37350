"""The page about troubleshooting: what each reason means, what causes it, and what to do.

A reason is the anchor of its own section, in lower case: so the reason of a condition, of an
event, of a run in a status or of a line of the log leads there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from generation.errorclasses import OPERATOR, ErrorClass, errors
from generation.markdown import NOTE, meanings, table
from snaploom.models.base import member_docs
from snaploom.models.codes import CODE_BY_ID
from snaploom.models.findings import Code
from snaploom.models.remedies import REMEDY_BY_REASON, Remedy
from snaploom_operator.conditions import CONDITIONS, EVENTS, EVERY_REMEDY, ConditionType, Reason
from snaploom_operator.errors import CLUSTER

DOCS = Path(__file__).parents[1]
PAGE = "operating/troubleshooting.md"
"""Below `docs/`."""

_INTRODUCTION = """\
Every reason that Snaploom gives is a heading of this page: search it for the word that you see, or
put it behind the address in lower case (`troubleshooting.md#runrefused`).
"""
_PLACES = [
    [
        "the reason of a condition",
        "`kubectl get snaploom --output wide`, `kubectl describe outputdataset NAME`",
    ],
    ["the reason of an event", "`kubectl events --for outputdataset/NAME`"],
    [
        "how the last run ended",
        "`status.lastRun.reason`; `snaploom status NAME` shows it, and what to do",
    ],
    [
        "the operator's log, the metric `snaploom_reconcile_failures_total`",
        "[Watch the operator itself](../how-to/watch-the-operator.md)",
    ],
]
_FAILED_RUNS = """\
`RunRefused`, `RetriesExhausted`, `RunWillBeRetried` and `LastRunFailed` only show how the operator
treats a failed run. Why it failed is the reason in brackets in their message, further down.
[The operator](../concepts/operator.md) describes how conditions follow each other.
"""


def troubleshooting_page() -> str:
    """The page."""
    documented = member_docs(Reason)
    reasons = {reason.value: documented[reason.value] for reason in Reason}
    elsewhere = {word: text for word, text in error_meanings().items() if word not in reasons}
    return "\n".join(
        [
            "# Troubleshooting, by reason\n",
            NOTE,
            _INTRODUCTION,
            table(["where you see it", "how to look"], _PLACES),
            _FAILED_RUNS,
            "## Conditions\n",
            "`Ready` is always in `status.conditions`. `Reconciling` and `Stalled` are there only "
            "while they are true, and never both.\n",
            meanings(ConditionType),
            *_sections(CONDITIONS, reasons),
            "## Events, and ends of runs\n",
            *_sections(EVENTS, reasons),
            "## Errors of runs and commands\n",
            "Also the reasons of findings `SL192`. What may go away by itself is tried again, as "
            "`run.retry` sets. An error is a class of its reason's name, and ends a command with "
            "exit code 1, where nothing else is stated.\n",
            *_sections(sorted(REMEDY_BY_REASON), elsewhere),
            "## Errors of the operator\n",
            *_sections(sorted(CLUSTER), elsewhere),
        ]
    )


def error_meanings() -> dict[str, str]:
    """What each reason of an error means, by reason; of several classes, that of its name."""
    found: dict[str, ErrorClass] = {}
    for each in (*errors(), *errors(OPERATOR)):
        if each.reason not in found or each.name == each.reason:
            found[each.reason] = each
    return {reason: f"{each.meaning}{_facts(each)}" for reason, each in found.items()}


def _facts(error: ErrorClass) -> str:
    """Class, exit code and retries, as far as they are not the usual ones."""
    facts = [
        f"`{error.name}`" if error.name != error.reason else "",
        f"exit code {error.exit_code}" if error.exit_code != 1 else "",
        "tried again" if error.retryable else "",
    ]
    text = ", ".join(filter(None, facts))
    return f" ({text}.)" if text else ""


def linked(reason: str, here: str) -> str:
    """A reason as a link to its section, from a folder below `docs/`."""
    return f"[`{reason}`]({here}{PAGE}#{reason.lower()})"


def reasons_of(code: Code) -> list[str]:
    """Reasons that are reported with a finding of this code."""
    return sorted(word for word, remedy in EVERY_REMEDY.items() if code.code in remedy.codes)


def _sections(words: Iterable[str], documented: dict[str, str]) -> list[str]:
    return [_section(word, documented[word]) for word in words if word in documented]


def _section(word: str, meaning: str) -> str:
    remedy = EVERY_REMEDY[word]
    return (
        f"### {word}\n\n{meaning}\n\n"
        f"**Cause**: {remedy.cause}\n\n**Fix**: {remedy.fix}{_more(remedy)}\n"
    )


def _more(remedy: Remedy) -> str:
    """Where to read on."""
    links = [_code_link(code) for code in remedy.codes]
    if remedy.see:
        title = (DOCS / remedy.see).read_text("utf-8").partition("\n")[0].removeprefix("# ")
        links.append(f"[{title}](../{remedy.see})")
    return f" More: {', '.join(links)}." if links else ""


def _code_link(code: str) -> str:
    title = CODE_BY_ID[code].title
    anchor = f"{code} {title}".lower().replace(" ", "-")
    return f"[{code}](../reference/findings.md#{anchor})"
