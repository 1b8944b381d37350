"""The environment and variables of declarations, as plans show them."""

from __future__ import annotations

from pydantic import JsonValue

from snaploom.loading.project import AppliedProject
from snaploom.planning.secretdetection import secret_form

HIDDEN = "(not shown: it may be secret)"


def project_json(applied: AppliedProject) -> JsonValue:
    """The key `project` of `plan -o json`; null where there is neither environment nor variable."""
    if not applied.values and not applied.environment:
        return None
    values: dict[str, JsonValue] = {name: _shown(value) for name, value in _sorted(applied)}
    return {"file": applied.file, "environment": applied.environment, "variables": values}


def project_text(applied: AppliedProject) -> str:
    """Lines of the environment and of each variable; empty where there is neither."""
    if not applied.values and not applied.environment:
        return ""
    environment = f"environment {applied.environment}" if applied.environment else "no environment"
    of = f" of {applied.file}" if applied.file else ""
    lines = [f"  {name} = {_shown(value)}" for name, value in _sorted(applied)]
    return "\n".join([f"variables, {environment}{of}", *lines]) + "\n\n"


def _sorted(applied: AppliedProject) -> list[tuple[str, str]]:
    return sorted(applied.values.items())


def _shown(value: str) -> str:
    return HIDDEN if secret_form(value) else value
