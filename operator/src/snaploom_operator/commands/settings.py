"""`snaploom operator settings`, and the options of commands that run a process of the operator."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.policy.pods import BUILT_IN_LISTS
from snaploom_operator.commands.options import Form, OutputForm
from snaploom_operator.settings import OperatorSettings, read_settings

HIDDEN = "(hidden)"
"""Replaces values that may be secret."""
_TEXT_WIDTH = 98


def settings(
    *,
    settings: Annotated[
        Path | None, Parameter(help="Settings file (YAML); default: built-in defaults.")
    ] = None,
    entries: Annotated[
        bool, Parameter(help="Show every entry of the built-in lists, not only their number.")
    ] = False,
    output: Form = OutputForm.TEXT,
) -> int:
    """Show the effective settings, and the allow lists of declarations.

    Values of environment variables, and of Spark settings outside the built-in list, are hidden.
    """
    shown = shown_settings(read_settings(settings), is_long=entries)
    if output is OutputForm.JSON:
        text = json.dumps(shown, indent=2) + "\n"
    else:
        text = yaml.safe_dump(shown, sort_keys=False, width=_TEXT_WIDTH)
    sys.stdout.write(text)
    return 0


def shown_settings(settings: OperatorSettings, *, is_long: bool) -> dict[str, JsonValue]:
    """Settings without secrets, and each allow list with its built-in and added entries.

    The built-in entries are counted, unless `is_long`.
    """
    dumped = settings.dump()
    added = dumped.pop("allow")
    assert isinstance(added, dict)
    return {
        "settings": _without_secrets(dumped),
        "allow": {
            name: {
                "builtIn": [*BUILT_IN_LISTS[name]] if is_long else len(BUILT_IN_LISTS[name]),
                "added": entries,
            }
            for name, entries in added.items()
        },
    }


def _without_secrets(value: JsonValue, key: str = "") -> JsonValue:
    if isinstance(value, list):
        if key == "env":
            return [
                {**each, "value": HIDDEN} if isinstance(each, Mapping) and "value" in each else each
                for each in value
            ]
        return [_without_secrets(each) for each in value]
    if not isinstance(value, dict):
        return value
    if key == "sparkConf":
        known = BUILT_IN_LISTS[key]
        return {name: text if name in known else HIDDEN for name, text in value.items()}
    return {name: _without_secrets(inner, name) for name, inner in value.items()}
