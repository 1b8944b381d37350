"""Checks of single values, texts and SQL that several kinds share."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache
from types import NoneType
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import BaseModel

from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.common import EpochNanos, Resource, TimeOffset, parse_instant
from snaploom.models.datasource import Credentials
from snaploom.models.findings import Finding
from snaploom.models.run import RunSettings
from snaploom.policy.references import Scope
from snaploom.policy.sqlfunctions import CHANGES_ROWS, REASONS, Determinism, hint_for, refusal_of
from snaploom.policy.sqltext import SqlFacts, SqlFault, SqlForm, SqlText
from snaploom.policy.verdicts import MAX_INSTRUCTIONS, RegexList, TextJudge

# Walks over the fields of models: every text of a resource but of its status, with its path.

NO_TEXTS = frozenset({NoneType, bool, int, float})
"""Types whose values hold no text."""


@cache
def walked_fields(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    """Names of the fields of a model, in Python and in YAML.

    The status is left out: the operator writes it, from what was judged.
    """
    fields = model.model_fields.items()
    return tuple((name, field.alias or name) for name, field in fields if name != "status")


def texts_with(value: object, part: str, path: str = "") -> Iterator[tuple[str, str]]:
    """Path and text of every text below a value that contains a part.

    `part` is a text such as `://`; `path` that of the value, empty for a whole resource.
    """
    if isinstance(value, str):
        if part in value:
            yield path, value
    elif isinstance(value, BaseModel):
        values = vars(value)
        for name, shown in walked_fields(type(value)):
            inner = values[name]
            if type(inner) not in NO_TEXTS:
                yield from texts_with(inner, part, f"{path}.{shown}" if path else shown)
    elif isinstance(value, tuple | list):  # before the test for any mapping, which is slow
        for index, inner in enumerate(value):
            yield from texts_with(inner, part, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from texts_with(inner, part, f"{path}.{name}")


# Checks of single values that several kinds share: patterns, zones, times, names in a list.

Findings = tuple[Finding, ...]

_ANY_DAY = datetime(2000, 1, 1)
"""Day from which a tick is looked for; any day would do."""


def regex_findings(
    patterns: Iterable[tuple[str, str | None]], owner: Resource, judge_text: TextJudge
) -> tuple[Findings, Mapping[str, int]]:
    """Findings about an object's regular expressions, and how many groups each valid one has.

    `patterns` has the path of the field of each; absent ones are None.
    """
    given = [(path, pattern) for path, pattern in patterns if pattern is not None]
    if not given:
        return (), {}
    verdict = judge_text(RegexList(tuple(pattern for _, pattern in given)))
    findings: list[Finding] = []
    groups: dict[str, int] = {}
    for (path, pattern), judged in zip(given, verdict.judged, strict=False):
        if isinstance(judged, int):
            groups[path] = judged
            continue
        findings.append(
            owner.finding(
                "SL131",
                path,
                f"the regular expression is not valid: {judged.message}",
                found=pattern,
                expected="a regular expression that can be searched in linear time",
                hint=judged.hint,
            )
        )
    if verdict.unjudged is not None:
        path, _ = given[len(verdict.judged)]
        findings.append(
            owner.finding(
                "SL131",
                path,
                verdict.unjudged.message,
                expected=f"programs of at most {MAX_INSTRUCTIONS} instructions together",
                hint=verdict.unjudged.hint,
            )
        )
    return tuple(findings), groups


def zone_findings(zone: str, owner: Resource, path: str) -> Iterator[Finding]:
    """A finding when a time zone is not in the tz database."""
    if not _zone_exists(zone):
        yield owner.finding(
            "SL132",
            path,
            "there is no such time zone",
            found=zone,
            expected="a name of the tz database",
            hint=did_you_mean(zone, sorted(available_timezones())),
        )


@lru_cache(maxsize=1024)
def _zone_exists(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True


def cron_findings(expression: str, owner: Resource, path: str) -> Iterator[Finding]:
    """A finding when a cron expression is not five valid fields, or never comes due."""
    problem = _cron_problem(expression)
    if problem is not None:
        yield owner.finding(
            "SL133",
            path,
            f"the cron expression is not valid: {problem}",
            found=expression,
            expected="minute, hour, day of month, month and day of week, such as `0 2 * * *`",
        )


def _cron_problem(expression: str) -> str | None:
    count = len(expression.split())
    if count != 5:
        return f"it has {count} field{'' if count == 1 else 's'}, not five"
    try:
        next(CronSim(expression, _ANY_DAY))
    except CronSimError as error:
        return str(error)
    except StopIteration:
        return "it never comes due"
    return None


def instant_findings(text: str, owner: Resource, path: str) -> tuple[EpochNanos | None, Findings]:
    """The instant, or a finding when the text is none."""
    try:
        return parse_instant(text), ()
    except ValueError:
        return None, (
            owner.finding(
                "SL134",
                path,
                "this is not a time",
                found=text,
                expected="ISO 8601 with Z or an offset, such as 2020-01-31T00:00:00Z",
            ),
        )


def range_findings(start: str | None, end: str | None, owner: Resource, path: str) -> Findings:
    """Findings when a half-open range has an end that is no time, or ends before it begins."""
    first, of_start = instant_findings(start, owner, f"{path}.from") if start else (None, ())
    last, of_end = instant_findings(end, owner, f"{path}.to") if end else (None, ())
    if first is not None and last is not None and first >= last:
        return (
            owner.finding(
                "SL134",
                path,
                "the range ends before it begins",
                found=f"from {start} to {end}",
                expected="from before to; `to` itself is no longer in the range",
                hint="exchange the two, or give a later `to`",
            ),
        )
    return (*of_start, *of_end)


def duplicate_findings(names: Iterable[str], owner: Resource, path: str) -> Findings:
    """A finding for every name that stands in a list before, ignoring case."""
    first: dict[str, str] = {}
    findings: list[Finding] = []
    for index, name in enumerate(names):
        earlier = first.get(name.casefold())
        first.setdefault(name.casefold(), name)
        if earlier is not None:
            findings.append(
                owner.finding(
                    "SL135",
                    f"{path}[{index}]",
                    "this name stands in the list already, ignoring case",
                    found=f"{name}, and {earlier} before it",
                    expected="names that differ in more than case",
                )
            )
    return tuple(findings)


def length_findings(length: TimeOffset | None, owner: Resource, path: str) -> Iterator[Finding]:
    """A finding when a length is given, but is zero."""
    if length is None or not length.is_zero:
        return
    yield owner.finding(
        "SL180",
        path,
        "this length must be longer than nothing; every part is 0",
        found="0",
        expected="one part of at least 1",
    )


def run_findings(run: RunSettings, owner: Resource) -> Findings:
    """Findings about `spec.run`, which all runnable kinds have."""
    if run.schedule is None:
        return ()
    return (
        *cron_findings(run.schedule.cron, owner, "spec.run.schedule.cron"),
        *zone_findings(run.schedule.time_zone, owner, "spec.run.schedule.timeZone"),
    )


# Credentials from environment variables: none that belong to somebody else than the source.

OF_OTHERS = (
    "AWS_", "AZURE_", "GOOGLE_", "GCP_", "VAULT_", "SNAPLOOM_", "KUBE", "SPARK_", "HADOOP_",
    "DOCKER_", "GITHUB_", "GH_", "GITLAB_", "CI_", "SSH_", "NPM_", "PIP_", "TWINE_", "HF_",
    "OPENAI_", "ANTHROPIC_", "DATABRICKS_", "SNOWFLAKE_", "DBT_",
)  # fmt: skip
"""Prefixes of names of variables that clouds, tools and Snaploom itself read."""
OF_INDEXES = ("SNAPLOOM_OPENSEARCH_USERNAME", "SNAPLOOM_OPENSEARCH_PASSWORD")
"""Ours that hold credentials of an index's store."""


def variable_findings(
    credentials: Credentials | None, owner: Resource, path: str
) -> Iterator[Finding]:
    """A finding for every variable that belongs to a cloud, a tool, or Snaploom itself."""
    declared = None if credentials is None else credentials.from_environment
    if declared is None:
        return
    for field, name in (
        ("userVariable", declared.user_variable),
        ("passwordVariable", declared.password_variable),
    ):
        if name.upper().startswith(OF_OTHERS) and name not in OF_INDEXES:
            yield owner.finding(
                "SL139",
                f"{path}.fromEnvironment.{field}",
                "this environment variable belongs to something else, and would be sent to the "
                "server of this declaration",
                found=name,
                expected="a variable that exists only for this server, such as SHOP_DB_PASSWORD",
            )


# Findings about SQL of declarations that apply in every place.


_EXPECTED = {
    SqlForm.QUERY: "a SELECT in Spark SQL",
    SqlForm.EXPRESSION: "an expression in Spark SQL, such as lower(name)",
    SqlForm.CONDITION: "a condition, such as amount > 0",
}


def facts_or_findings(
    text: str,
    form: SqlForm,
    owner: Resource,
    path: str,
    scope: Scope,
    refused: frozenset[Determinism] = CHANGES_ROWS,
) -> tuple[SqlFacts | None, Findings]:
    """The facts of a text, or the finding why it has none.

    `refused` are the dependences that its result may not have.
    """
    verdict = scope.judge_text(SqlText(text, form))
    if isinstance(verdict, SqlFault):
        return None, (
            owner.finding(
                "SL150",
                path,
                f"this is not valid Spark SQL: {verdict.message}",
                found=verdict.found or shortened(text),
                expected=_EXPECTED[form],
            ),
        )
    return verdict, (
        *function_findings(verdict, owner, path, scope),
        *_varying_findings(verdict, owner, path, refused),
    )


def expression_findings(
    text: str,
    owner: Resource,
    path: str,
    scope: Scope,
    *,
    aggregate: bool = False,
    refused: frozenset[Determinism] = CHANGES_ROWS,
) -> tuple[SqlFacts | None, Findings]:
    """An expression over the columns of a row (or of all rows), with its findings."""
    facts, findings = facts_or_findings(text, SqlForm.EXPRESSION, owner, path, scope, refused)
    if facts is None:
        return None, findings
    beyond = facts.beyond_aggregate if aggregate else facts.beyond_expression
    return facts, (
        *clause_findings(beyond, "an expression over columns", owner, path),
        *findings,
    )


def clause_findings(
    beyond: Iterable[str], expected: str, owner: Resource, path: str, hint: str = ""
) -> Findings:
    """A finding when SQL has a clause that its place does not allow."""
    named = ", ".join(beyond)
    if not named:
        return ()
    return (
        owner.finding(
            "SL151",
            path,
            f"this SQL may not have {named}",
            found=named,
            expected=expected,
            hint=hint,
        ),
    )


def function_findings(
    facts: SqlFacts, owner: Resource, path: str, scope: Scope
) -> Iterator[Finding]:
    """A finding when SQL calls a function that is not on the list of functions."""
    refused = {name: reason for name in facts.calls if (reason := refusal_of(name, scope.allow))}
    if not refused:
        return
    name, reason = next(iter(refused.items()))
    yield owner.finding(
        "SL151",
        path,
        f"the function {name} is not allowed: {reason}",
        found=", ".join(refused),
        expected="functions of the list in docs/reference/sql-functions.md",
        hint=f"leave it out, or have it added to the list 'functions' (chart value "
        f"allow.functions, or --allow functions={name})",
    )


def _varying_findings(
    facts: SqlFacts, owner: Resource, path: str, refused: frozenset[Determinism]
) -> Findings:
    varying = (
        (Determinism.RANDOM, facts.of_chance),
        (Determinism.SESSION, facts.of_session),
    )
    return tuple(
        owner.finding(
            "SL156",
            path,
            f"this SQL gives other rows when it is computed again: {found[0]}, because "
            f"{REASONS[determinism]}",
            found=", ".join(found),
            expected="SQL whose result depends only on the values of its columns",
            hint=hint_for(found, determinism),
        )
        for determinism, found in varying
        if found and determinism in refused
    )


def order_findings(facts: SqlFacts, owner: Resource, path: str) -> Iterator[Finding]:
    """A warning when the result of a query depends on the order of rows."""
    if facts.of_order:
        yield owner.finding(
            "SL157",
            path,
            f"two runs over the same rows may publish other values: {facts.of_order[0]}, because "
            f"{REASONS[Determinism.ORDER]}",
            found=", ".join(facts.of_order),
            expected="a result that does not depend on the order of rows",
            hint=hint_for(facts.of_order, Determinism.ORDER),
        )


def table_findings(
    facts: SqlFacts, aliases: Iterable[str], owner: Resource, path: str
) -> list[Finding]:
    """A finding for every table that a query reads besides its declared aliases."""
    declared = tuple(aliases)
    folded, expected = {alias.lower() for alias in declared}, " or ".join(declared)
    return [
        owner.finding(
            "SL152",
            path,
            f"the query reads {table}, which is not declared",
            found=table,
            expected=expected,
        )
        for table in facts.tables
        if table.lower() not in folded
    ]


def shortened(text: str) -> str:
    """A query on one line, no longer than a line of a message."""
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:100]}..."
