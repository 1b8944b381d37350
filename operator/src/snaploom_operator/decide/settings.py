"""What the operator's settings mean for decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.run import SparkSettings, Submitter
from snaploom_operator.settings import NO_LINEAGE, LineageSettings, LogFormat, OperatorSettings
from snaploom_operator.submitters.base import ApplicationForm
from snaploom_operator.submitters.forms import FORMS


@dataclass(frozen=True)
class DecideSettings:
    """What is the same for all resources."""

    spark: SparkSettings
    """Spark applications, where a resource says nothing; complete."""
    submitter: Submitter
    """Who starts jobs, where a resource says nothing."""
    forms: Mapping[Submitter, ApplicationForm] = field(hash=False)
    """How runs are written down, for every submitter that there may be."""
    allow_jdbc_url: bool = False
    """Whether jobs may read databases by whole JDBC URLs."""
    allow: Allowances = NO_ALLOWANCES
    """What declarations may use beyond the built-in lists."""
    log_format: LogFormat = "text"
    """Form of the lines of drivers."""
    lineage: LineageSettings = NO_LINEAGE
    """Where jobs tell what they make of what."""

    @classmethod
    def of(cls, settings: OperatorSettings, *, is_local: bool = False) -> DecideSettings:
        """What the operator's settings come to.

        Args:
            settings: the settings.
            is_local: whether the operator was started with `--local`, and so runs jobs itself.
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
