"""The part of the operator's settings that decisions use."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.run import Submitter
from snaploom_operator.operatorsettings import OperatorSettings


@dataclass(frozen=True)
class DecideSettings:
    """Settings that are the same for all resources."""

    operator: OperatorSettings
    submitter: Submitter
    """Default submitter."""

    @classmethod
    def of(cls, settings: OperatorSettings, *, is_local: bool = False) -> DecideSettings:
        """Derive them from the settings; with `--local` the operator itself is the submitter."""
        first = next(iter(settings.submitters), Submitter.SPARK_OPERATOR)
        return cls(settings, Submitter.LOCAL if is_local else first)
