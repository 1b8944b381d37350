"""Checks of single values and texts that several kinds share."""

from __future__ import annotations

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
from snaploom.models.findings import Finding, make_finding
from snaploom.models.run import RunSettings
from snaploom.policy.verdicts import MAX_INSTRUCTIONS, RegexFault, RegexList, TextJudge

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
            make_finding(
                "SL131",
                f"the regular expression is not valid: {judged.message}",
                resource=owner.identity,
                path=path,
                found=pattern,
                expected="a regular expression that can be searched in linear time",
                hint=judged.hint,
            )
        )
    if verdict.unjudged is not None:
        path, _ = given[len(verdict.judged)]
        findings.append(_regexes_unjudged(verdict.unjudged, owner, path))
    return tuple(findings), groups


def _regexes_unjudged(fault: RegexFault, owner: Resource, path: str) -> Finding:
    return make_finding(
        "SL131",
        fault.message,
        resource=owner.identity,
        path=path,
        expected=f"programs of at most {MAX_INSTRUCTIONS} instructions together",
        hint=fault.hint,
    )


def zone_findings(zone: str, owner: Resource, path: str) -> Findings:
    """A finding when a time zone is not in the tz database."""
    if _zone_exists(zone):
        return ()
    return (
        make_finding(
            "SL132",
            "there is no such time zone",
            resource=owner.identity,
            path=path,
            found=zone,
            expected="a name of the tz database",
            hint=did_you_mean(zone, sorted(available_timezones())),
        ),
    )


@lru_cache(maxsize=1024)
def _zone_exists(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True


def cron_findings(expression: str, owner: Resource, path: str) -> Findings:
    """A finding when a cron expression is not five valid fields, or never comes due."""
    problem = _cron_problem(expression)
    if problem is None:
        return ()
    return (
        make_finding(
            "SL133",
            f"the cron expression is not valid: {problem}",
            resource=owner.identity,
            path=path,
            found=expression,
            expected="minute, hour, day of month, month and day of week, such as `0 2 * * *`",
        ),
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
            make_finding(
                "SL134",
                "this is not a time",
                resource=owner.identity,
                path=path,
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
            make_finding(
                "SL134",
                "the range ends before it begins",
                resource=owner.identity,
                path=path,
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
                make_finding(
                    "SL135",
                    "this name stands in the list already, ignoring case",
                    resource=owner.identity,
                    path=f"{path}[{index}]",
                    found=f"{name}, and {earlier} before it",
                    expected="names that differ in more than case",
                )
            )
    return tuple(findings)


def length_findings(length: TimeOffset | None, owner: Resource, path: str) -> Findings:
    """A finding when a length is given, but is zero."""
    if length is None or not length.is_zero:
        return ()
    return (
        make_finding(
            "SL180",
            "this length must be longer than nothing; every part is 0",
            resource=owner.identity,
            path=path,
            found="0",
            expected="one part of at least 1",
        ),
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
            yield make_finding(
                "SL139",
                "this environment variable belongs to something else, and would be sent to the "
                "server of this declaration",
                resource=owner.identity,
                path=f"{path}.fromEnvironment.{field}",
                found=name,
                expected="a variable that exists only for this server, such as SHOP_DB_PASSWORD",
            )
