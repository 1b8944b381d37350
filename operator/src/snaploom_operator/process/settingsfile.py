"""Reads the operator's settings file, with the line of a fault."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from snaploom.loading.composer import Composed, compose
from snaploom.loading.nodes import plain, position_of, split_path
from snaploom.loading.pydanticerrors import findings_of
from snaploom_operator.errors import SettingsInvalid
from snaploom_operator.operatorsettings import OperatorSettings


def read_settings(path: Path | None) -> OperatorSettings:
    """Read the settings of a file; the defaults without a file, and for an empty one.

    Raises: SettingsInvalid: it cannot be read, or is invalid.
    """
    if path is None:
        return OperatorSettings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(
            f"the settings in {path} cannot be read",
            found=str(error),
            expected="a YAML file in UTF-8",
            hint="check the path and its permissions; the chart mounts the file",
        ) from error
    return _parsed(path, compose(text))


def _parsed(path: Path, composed: Composed) -> OperatorSettings:
    faults = [fault for document in composed.documents for fault in document.faults]
    fault = composed.fault or (faults[0] if faults else None)
    if fault is not None:
        raise SettingsInvalid(
            f"{path}:{fault.at.line}: {fault.message}",
            found=fault.found or None,
            expected=fault.expected or None,
            hint=fault.hint or None,
        )
    if not composed.documents or plain(composed.documents[0].node) is None:
        return OperatorSettings()
    document = composed.documents[0]
    try:
        return OperatorSettings.parse(plain(document.node))
    except ValidationError as error:
        findings = findings_of(error, OperatorSettings, document.node, "")
    first, more = findings[0], len(findings) - 1
    line = position_of(document.node, document.at, split_path(first.path)).line
    raise SettingsInvalid(
        f"{path}:{line}: {first.message}" + (f" (and {more} more faults)" if more else ""),
        path=first.path,
        found=first.found or None,
        expected=first.expected or None,
        hint=first.hint or None,
    )
