"""The page of every problem that Snaploom names, from `problems.toml`.

The name of a problem is the anchor of its section, in lower case: so the code of a finding, and the
reason of a condition, of an event, of a run in a status or of a line of the log lead there.
"""

from __future__ import annotations

from pathlib import Path

import snaploom_operator.errors
from generation.markdown import NOTE, meanings, table
from snaploom import errors
from snaploom.errors import Problem, SnaploomError, problems
from snaploom_operator.conditions import ConditionType

DOCS = Path(__file__).parents[1]
PAGE = "reference/problems.md"
"""Below `docs/`."""

_INTRODUCTION = """\
Each code and each reason that Snaploom gives is a heading here: search for the word that you see,
or put it behind the address in lower case (`problems.md#runrefused`). What breaks in a cluster, and
what happens by itself, is in [When something breaks](../operating/failures.md).
"""
_PLACES = [
    ["a code, such as `SL112`", "`snaploom validate`, `plan`, `run`; the admission webhook"],
    ["the reason of an error", "the output and log of a command or a run; findings `SL192`"],
    [
        "the reason of a condition or an event",
        "`kubectl describe outputdataset NAME`; `kubectl events --for outputdataset/NAME`",
    ],
    ["how the last run ended", "`snaploom status NAME`, which shows what to do, too"],
    [
        "a reason in the operator's log and metrics",
        "[Watch the operator itself](../how-to/watch-the-operator.md)",
    ],
]
_FINDINGS = """\
Codes are stable. The smallest input that causes each is in `docs/samples/findings`.
"""
_ERRORS = """\
Also the reasons of findings `SL192`. "Tried again" is what may go away by itself, as `run.retry`
sets. In Python each is a class of its name; a command ends with exit code 1, where nothing else is
stated.
"""
_CONDITIONS = """\
`Ready` is always in `status.conditions`; `Reconciling` and `Stalled` only while they are true,
never both. `RunRefused`, `RetriesExhausted`, `RunWillBeRetried` and `LastRunFailed` show how the
operator treats a failed run; why it failed is the reason in brackets in their message.
[The operator](../concepts/operator.md) describes how conditions follow each other.
"""


def problems_page() -> str:
    """The page."""
    found = problems().values()
    return "\n".join(
        [
            "# Problems: codes and reasons\n",
            NOTE,
            _INTRODUCTION,
            table(["what you see", "where"], _PLACES),
            "## Findings\n",
            _FINDINGS,
            *(_section(each) for each in found if each.severity),
            "## Errors of runs and commands\n",
            _ERRORS,
            *(_section(each) for each in found if each.at == "error" and not each.severity),
            "## Conditions\n",
            _CONDITIONS,
            meanings(ConditionType),
            *(_section(each) for each in found if each.at == "condition"),
            "## Events, and ends of runs\n",
            *(_section(each) for each in found if each.at == "event"),
            "## Errors of the operator\n",
            *(_section(each) for each in found if each.at == "operator"),
        ]
    )


def _section(problem: Problem) -> str:
    fix = f" **Fix**: {problem.fix}" if problem.fix else ""
    text = f"See [{problem.of}](#{problem.of.lower()})." if problem.of else problem.cause + fix
    return f"### {problem.name}\n\n{_facts(problem)}{text}{_more(problem)}\n"


def _facts(problem: Problem) -> str:
    """Title of a finding, class, exit code and retries, as far as they are not the usual ones."""
    severity = "ERROR or WARNING" if problem.severity == "EITHER" else problem.severity
    name = _CLASSES.get(problem.name)
    facts = [
        severity if severity != "ERROR" else "",
        f"class `{name}`" if name else "",
        f"exit code {problem.exit}" if problem.exit != 1 else "",
        "tried again" if problem.retried and problem.at != "operator" else "",
    ]
    stated = ", ".join(filter(None, facts))
    title = f"**{problem.title}**" if problem.title else ""
    head = " ".join(filter(None, [title, f"({stated})" if stated else ""]))
    return f"{head}. " if head else ""


_CLASSES = {
    each.reason: each.__name__
    for module in (errors, snaploom_operator.errors)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, SnaploomError)
    if each.__name__ != each.reason != "Invalid"
}
"""Names of classes by reason, where the two differ."""


def _more(problem: Problem) -> str:
    """An example, other names of the same problem, and where to read on."""
    others = [each.name for each in problems().values() if each.of == problem.name]
    links = [f"[{name}](#{name.lower()})" for name in others]
    if problem.see:
        title = (DOCS / problem.see).read_text("utf-8").partition("# ")[2].partition("\n")[0]
        place = (
            "../" + problem.see if not problem.see.startswith("reference/") else problem.see[10:]
        )
        links.append(f"[{title}]({place})")
    example = f" Example: {problem.example}" if problem.example else ""
    return example + (f" More: {', '.join(links)}." if links else "")
