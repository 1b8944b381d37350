"""Outputs and reports of sizes that no status can hold."""

from __future__ import annotations

from support.declared.declarations import files, key, output, parsed, relationship
from support.operator.observations import DECLARATIONS, NOW, RUN, UID, at

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import Report
from snaploom.plan.bundles import bundle_for
from snaploom.plan.plan import plan_offline
from snaploom_operator.decision import ObservedOutput
from snaploom_operator.objects import FoundReport


def a_wide_output(joins: int, name_length: int = 10) -> ObservedOutput:
    """An output of so many joins to sources with names of so many characters."""
    names = [f"s{number:03}".ljust(name_length, "x") for number in range(joins)]
    others = [{"dataSource": name, "fieldName": name} for name in names]
    raws = [
        files("customer"),
        *(files(name) for name in names),
        relationship("all", (["customer", *names], [key("id")])),
        output(
            **{
                "dataModel.otherDataSources": others,
                "dataModel.dataRelationships": [{"name": "all"}],
            }
        ),
    ]
    raws[-1]["metadata"] |= {"uid": UID, "generation": 3}
    for raw in raws:
        raw["metadata"]["namespace"] = "shop"
    resources = parsed(raws)
    resource = resources[-1]
    assert isinstance(resource, OutputDataset)
    bundle = bundle_for("OutputDataset", "wide", resources)
    return ObservedOutput(
        now=NOW,
        resource=resource,
        findings=(),
        bundle=bundle,
        plan=plan_offline(bundle),
        declarations=DECLARATIONS,
    )


def the_largest_report() -> FoundReport:
    """A report with as much of everything as its model allows a status to show."""
    long = "é" * 1000
    source = {"fieldName": long, "source": long, "time": at(0), "fingerprint": long}
    excluded = {"reason": "SNAPSHOT_MISSING", "message": long}
    join = {"in": 10**12, "out": 10**12, "matched": 10**12, "nullKeys": 10**12}
    skipped = {"time": at(0), "partition": long, "reason": "RETENTION", "message": long * 20}
    newest = {
        "time": at(0),
        "publishedAt": at(0),
        "partition": long,
        "rows": 10**15,
        "files": 10**9,
        "bytes": 10**15,
        "sources": [source] * 50,
        "excluded": [excluded | {"fieldName": f"{number}{long}"} for number in range(50)],
        "joins": [join | {"child": f"{number}{long}"[:1000]} for number in range(50)],
        "warnings": [f"{number}{long}"[:1000] for number in range(50)],
    }
    return FoundReport(
        RUN,
        Report.parse(
            {
                "output": "wide",
                "uid": UID,
                "runId": RUN,
                "phase": "FAILED",
                "reason": "R" * 1000,
                "message": long * 30,
                "startedAt": at(-100),
                "finishedAt": at(-1),
                "skipped": [skipped] * 100,
                "failed": [skipped] * 100,
                "snapshotCount": 10**9,
                "newest": newest,
                "published": [{"time": at(0), "rows": 10**15}] * 50,
                "manifest": {
                    "uri": "s3://" + "é" * 2000,
                    "sequence": 10**9,
                    "fixed": {f"key-{number}": long for number in range(200)},
                },
            }
        ),
    )
