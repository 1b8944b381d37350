"""Additions to the built-in allowlists, from the environment and options of a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from snaploom.models.allowances import ALLOW_VARIABLE, AllowanceInvalid, Allowances
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations


def allowances_of(environment: Mapping[str, str], texts: Iterable[str] = ()) -> Allowances:
    """The allowances of the environment and of `--allow` together.

    Args:
        environment: of the process.
        texts: each `LIST=ENTRY`.

    Raises:
        InvalidDeclarations: one of them names no list, or no entry.
    """
    given = f"the value of {ALLOW_VARIABLE}"
    try:
        allowed = Allowances.from_environment(environment)
        for text in texts:
            given = text
            allowed = allowed.joined(Allowances.of([text]))
    except (AllowanceInvalid, ValidationError) as error:
        what = str(error) if isinstance(error, AllowanceInvalid) else "a shorter entry"
        finding = make_finding(
            "SL191",
            "this allows nothing",
            path="--allow",
            found=given,
            expected=what,
            hint="write LIST=ENTRY, as in the message of the refusal",
        )
        raise InvalidDeclarations([finding]) from None
    return allowed
