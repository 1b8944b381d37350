"""The page of permissions, from the rules of the chart and the reasons that stand above them.

The templates are read as text, so that no Helm is needed; a test compares what is read with what
Helm renders. Of a template only what rules are written with is understood, and anything else is an
error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import JsonValue

from generation.markdown import NOTE, table
from snaploom.models.kinds import KINDS
from snaploom.models.schemas import as_object

ACCESS = Path(__file__).parents[2] / "charts/snaploom/templates/access"
PAGE = "operating/permissions.md"
"""Below `docs/`."""

_DEFINE = re.compile(r'{{- define "snaploom\.(\w+)\.(\w+)" -}}\n(.*?)\n{{- end -}}', re.DOTALL)
_KINDS = re.compile(r'^ *{{- include "snaploom\.kinds" \. \| nindent 4 }}$', re.MULTILINE)
_STATUSES = re.compile(
    r'^ *{{- range include "snaploom\.kinds" \. \| fromYamlArray }}\n'
    r"    - {{ \. }}/status\n *{{- end }}$",
    re.MULTILINE,
)
_NAMES = re.compile(r'{{ include "snaploom\.([\w.]+)" \. \| quote }}')
_CONDITION = re.compile(r"^{{- (?:if .*|end) }}$\n?", re.MULTILINE)
_PEOPLE = re.compile(
    r'\(dict "name" "(\w+)" "resources" \$(\w+) "verbs" (?:\$(\w+)|\(list (.*?)\)).*?'
    r'"why" "(.*?)"\)',
    re.DOTALL,
)
_OF_PEOPLE = {
    "kinds": [kind.plural for kind in KINDS],
    "status": [f"{kind.plural}/status" for kind in KINDS],
    "reading": ["get", "list", "watch"],
    "writing": ["create", "update", "patch", "delete", "deletecollection"],
}
_NAMED = {
    "fullname": "the release's",
    "operator.lease": "the operator's Lease",
    "webhook.secret": "the certificate's Secret",
}
_PARTS = {
    ("operator", "rules"): (
        "The operator, in watched namespaces",
        "A ClusterRole; with `watchNamespaces` a Role in each of these.",
    ),
    ("operator", "clusterRules"): (
        "The operator, outside namespaces",
        "A ClusterRole.",
    ),
    ("operator", "ownRules"): (
        "The operator, in its own namespace",
        "A Role.",
    ),
    ("webhook", "rules"): (
        "The webhook",
        "A ClusterRole; with `watchNamespaces` a Role in each of these.",
    ),
    ("pages", "rules"): (
        "Pages, in watched namespaces",
        "Where `pages.enabled` is set: a ClusterRole; with `watchNamespaces` a Role in each of "
        "these.",
    ),
    ("pages", "clusterRules"): (
        "Pages, outside namespaces",
        "Where `pages.enabled` is set: a ClusterRole. Both are questions; nothing is stored.",
    ),
    ("spark", "rules"): (
        "Jobs",
        "A Role in each of `spark.namespaces`, for the account of drivers. Executors have no "
        "token.",
    ),
}  # fmt: skip

_INTRODUCTION = """\
Every rule that the chart grants, with its reason; `helm template` renders the same reasons as
comments. `rbac.create: false` leaves all rules to you. Tests remove each rule of the operator and
expect a refusal, and run operator, webhook, pages and jobs under these accounts with the audit log
on: nothing is refused, and no right is unused.

No rule has a wildcard, and no account may bind, escalate or impersonate. The operator reads no
Secret but the one it writes, and can create neither pods nor accounts. `helm test` verifies this in
your cluster.

The operator also reads the API server's description of our kinds (`/openapi/v3`), which Kubernetes
allows every account. Without it, the operator logs that it cannot check whether the CRDs are
outdated.
"""

_INSTALLING = """\
## The installer

`helm install` creates CRDs, ClusterRoles, Roles, bindings, a ValidatingWebhookConfiguration,
Deployments, ServiceAccounts, Services, ConfigMaps, a Secret, and optional objects for monitoring
and policies. Kubernetes requires that the installer has all the rights below, or `escalate` on
roles. Without cluster-wide rights, set `crds.enabled: false`, `watchNamespaces`,
`rbac.aggregate: false` and `admission.enabled: false`, after a cluster administrator has applied
`snaploom crds`.
"""


@dataclass(frozen=True)
class GrantedRule:
    """One rule of the chart's roles."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...]
    """Names of objects that it is bound to, in words; none for all."""
    why: str
    """What stands above it."""


def permissions_page() -> str:
    """The page."""
    defined = rules_of_accounts()
    parts = ["# Permissions, and why\n", NOTE, _INTRODUCTION, _INSTALLING]
    for key, (title, where) in _PARTS.items():
        parts += [f"## {title}\n", f"{where}\n", _rules_table(defined[key])]
    parts += [
        "## People\n",
        "ClusterRoles that Kubernetes adds to its own `view`, `edit` and `admin`, unless "
        "`rbac.aggregate` is false.\n",
        _rules_table(rules_of_people()),
    ]
    return "\n".join(parts)


def rules_of_accounts() -> dict[tuple[str, str], tuple[GrantedRule, ...]]:
    """The rules of every account, by component and name of the definition."""
    text = (ACCESS / "_rules.tpl").read_text("utf-8")
    return {
        (component, name): tuple(_rules(body)) for component, name, body in _DEFINE.findall(text)
    }


def rules_of_people() -> tuple[GrantedRule, ...]:
    """The rules that are added to the roles of people."""
    text = (ACCESS / "people.yaml").read_text("utf-8")
    return tuple(
        GrantedRule(
            groups=("snaploom.io",),
            resources=tuple(_OF_PEOPLE[resources]),
            verbs=tuple(_OF_PEOPLE[variable] if variable else verbs.replace('"', "").split()),
            names=(f"role `{role}`",),
            why=why,
        )
        for role, resources, variable, verbs, why in _PEOPLE.findall(text)
    )


def _rules(body: str) -> Iterator[GrantedRule]:
    plain = _CONDITION.sub("", _KINDS.sub(_listed("{}"), _STATUSES.sub(_listed("{}/status"), body)))
    plain = _NAMES.sub(lambda found: f'"{_NAMED[found[1]]}"', plain)
    assert "{{" not in plain, f"a rule is written in a way that is not understood: {plain}"
    comments, lines = [""], []
    for line in plain.splitlines():
        if line.startswith("- "):
            comments.append("")
        if line.startswith("# "):
            comments[-1] = f"{comments[-1]} {line[2:]}".strip()
        else:
            lines.append(line)
    for raw, why in zip(yaml.safe_load("\n".join(lines)), comments, strict=False):
        rule = as_object(raw)
        yield GrantedRule(
            groups=_texts(rule["apiGroups"]),
            resources=_texts(rule["resources"]),
            verbs=_texts(rule["verbs"]),
            names=_texts(rule.get("resourceNames", [])),
            why=why,
        )


def _listed(form: str) -> str:
    return "\n".join(f"    - {form.format(kind.plural)}" for kind in KINDS)


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _rules_table(rules: tuple[GrantedRule, ...]) -> str:
    return table(["resources", "verbs", "why"], [_row(rule) for rule in rules])


def _row(rule: GrantedRule) -> list[str]:
    ours = {kind.plural for kind in KINDS}
    group = "" if rule.groups == ("",) else f" of `{', '.join(rule.groups)}`"
    if set(rule.resources) == ours:
        resources = "all our kinds"
    elif set(rule.resources) == {f"{each}/status" for each in ours}:
        resources = "`status` of all our kinds"
    else:
        resources = f"{', '.join(f'`{each}`' for each in rule.resources)}{group}"
    names = f", {', '.join(rule.names)}" if rule.names else ""
    return [f"{resources}{names}", ", ".join(rule.verbs), rule.why]
