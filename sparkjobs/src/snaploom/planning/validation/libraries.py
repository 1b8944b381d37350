"""Libraries that Spark needs for the sources of an output, and that only a run can see."""

from __future__ import annotations

from collections.abc import Iterator

from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.sources.registry import declared
from snaploom.planning.sources.tableformats import TABLE_FORMATS
from snaploom.planning.validation.outputfolder import brings


def library_findings(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    """Libraries that an output's sources need, and that its Spark configuration does not name."""
    wanted: dict[str, str] = {}
    for name in scope.reads.reached(output.spec.data_model.sources):
        kind = declared(scope.sources[name]).table_format
        if kind is not None:
            wanted[kind] = min(name, wanted.get(kind, name))
    for kind, name in sorted(wanted.items()):
        if not brings(output, kind):
            yield make_finding(
                "SL149",
                f"DataSource/{name} is a table of {TABLE_FORMATS[kind]}, which Spark reads by a "
                "library that only a run can see",
                resource=output.identity,
                path="spec.run.spark.sparkConf",
                found=f"no jar of {TABLE_FORMATS[kind]}",
                expected="its library, for the Spark that is used, on Spark's class path",
            )
