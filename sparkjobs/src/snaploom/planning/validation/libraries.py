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
    waiting = [
        output.spec.data_model.root_data_source.data_source,
        *(other.data_source for other in output.spec.data_model.other_data_sources),
    ]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        source = scope.sources.get(name)
        if source is None or name in seen:
            continue
        seen.add(name)
        waiting.extend(source.spec.reads)
        kind = declared(source).table_format
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
