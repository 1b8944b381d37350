"""The part of the operator's settings that decisions use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.run import SparkSettings, Submitter
from snaploom_operator.operatorsettings import (
    NO_LINEAGE,
    LineageSettings,
    LogFormat,
    OperatorSettings,
)
from snaploom_operator.submitters.base import ApplicationForm
from snaploom_operator.submitters.forms import FORMS


@dataclass(frozen=True)
class DecideSettings:
    """Settings that are the same for all resources."""

    spark: SparkSettings
    """Complete defaults of Spark applications."""
    submitter: Submitter
    """Default submitter."""
    forms: Mapping[Submitter, ApplicationForm] = field(hash=False)
    """The application form of every submitter."""
    allow_jdbc_url: bool = False
    """Whether jobs may read databases by whole JDBC URLs."""
    allow: Allowances = NO_ALLOWANCES
    """What declarations may use beyond the built-in lists."""
    log_format: LogFormat = "text"
    """Log format of drivers."""
    lineage: LineageSettings = NO_LINEAGE
    """Where jobs send lineage."""

    @classmethod
    def of(cls, settings: OperatorSettings, *, is_local: bool = False) -> DecideSettings:
        """Derive them from the operator's settings.

        Args: settings: the settings. is_local: whether the operator was started with `--local`.
        """
        first = next(iter(settings.submitters), Submitter.SPARK_OPERATOR)
        submitter = Submitter.LOCAL if is_local else first
        return cls(
            settings.spark,
            submitter,
            FORMS,
            allow_jdbc_url=settings.allow_jdbc_url,
            allow=settings.allow,
            log_format=settings.log_format,
            lineage=settings.lineage,
        )
