"""The identity of a run in a cluster, from its submitter: the run, and its resource."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.report import Report
from snaploom.models.skippingindex import SkippingIndex


@dataclass(frozen=True)
class RunIdentity:
    """The operator's identity of a run; storage has another one.

    Names of published files must never come again, and nobody can promise that of a name that is
    handed in: so files bear an id that the run makes up, and the Report has both.
    """

    run_id: str
    """Name of the run and of its application."""
    uid: str
    """UID of the resource."""
    attempt: int
    """Which attempt this is, as its submitter counts them."""

    def sign(self, report: Report) -> Report:
        """The Report as one of this run."""
        signature = {"run_id": self.run_id, "uid": self.uid, "attempt": self.attempt}
        return report.model_copy(update=signature)


@dataclass(frozen=True)
class Owner:
    """The resource that a run is of."""

    kind: str
    name: str
    namespace: str
    """Empty where there is none."""

    @property
    def label(self) -> str:
        """The `output` of Reports: the name, with its kind for a SkippingIndex."""
        is_index = self.kind == SkippingIndex.__name__
        return f"{self.kind}/{self.name}" if is_index else self.name
