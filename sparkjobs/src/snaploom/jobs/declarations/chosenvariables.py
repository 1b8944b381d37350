"""`--env` and `--set`: which values the variables of declarations have."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.projectfile import VariableChoice


def chosen_variables(environment: str | None, texts: Iterable[str]) -> VariableChoice:
    """The choice of `--env` and `--set name=value`.

    Raises:
        InvalidDeclarations: a value has no name, or one name has two values.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or values.get(name, value) != value:
            finding = make_finding(
                "SL191",
                "this gives no variable a value" if not sign else f"`{name}` is given two values",
                path="--set",
                found=name if not sign else f"--set {name}=... twice",
                expected="name=value, each name once",
                hint=f"write `--set {name or 'name'}=VALUE`",
            )
            raise InvalidDeclarations([finding])
        values[name] = value
    return VariableChoice(environment, values)
