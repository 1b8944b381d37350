"""The pages of the JSON documents that programs may rely on: plan, Report and data comparison.

The examples are what `snaploom` printed for `examples/customer`; a test runs it and compares.
"""

from __future__ import annotations

import json
from pathlib import Path

from generation.kinds import definition_pages
from generation.markdown import NOTE, block, table
from generation.models import Sections, document_schema
from snaploom.models.report import Report
from snaploom.plan.differences import (
    SAMPLE_COLUMNS,
    VALUE_LENGTH,
    ChangedValue,
    ColumnChange,
    ComparedSnapshot,
    DataComparison,
    RowChange,
    RowChanges,
    RowSample,
)
from snaploom.plan.steps import Action
from snaploom.types.merge import CommonFields, OneSided, Retyped

SAMPLES = Path(__file__).parents[1] / "samples"
NOW = "2024-03-15T00:00:00Z"
"""The `--now` of both examples."""

PLAN_KEYS = {
    "output": "Name of the OutputDataset.",
    "hash": "Hash of the join tree; equal trees have equal hashes. Empty when there is no plan.",
    "root": "DataSource whose rows the output's rows are.",
    "project": "The environment and the variables that the declarations were read with; null where "
    "there is neither.",
    "project.file": "The project file, `snaploom.yaml`; empty without one.",
    "project.environment": "What `--env` chose; empty without.",
    "project.variables": "Values of all variables, by name.",
    "accelerator": "The accelerator of a run here; null for a run without one.",
    "accelerator.name": "Its name.",
    "accelerator.settings": "Settings of Spark that it brings, by name.",
    "joins": "The join tree, in breadth-first order. Empty when there is no plan.",
    "joins[].number": "Number in the tree, from 1; the root is 0.",
    "joins[].fieldName": "Field of the output.",
    "joins[].source": "Its DataSource.",
    "joins[].parent": 'Field name of what it is joined to; `""` for the root.',
    "joins[].relationship": "DataRelationship that joins them.",
    "joins[].depth": "Joins between it and the root.",
    "joins[].groupBy": "Columns by which it is grouped; empty when it is not.",
    "joins[].asOf": "Its `asOf` as declared, with defaults; null when it has none.",
    "joins[].windows": "Its `windows` as declared, with defaults; null when it has none.",
    "joins[].history": "Length of its `snapshot.history`, such as `30d`; null when it has none.",
    "unreachable": "Sources to which no relationship leads.",
    "unreachable[].fieldName": "Field of the output.",
    "unreachable[].source": "Its DataSource.",
    "unreachable[].mode": "Its `pathMissingMode`.",
    "ties": "Sources that can be reached in several equally good ways.",
    "ties[].fieldName": "Field of the output.",
    "ties[].depth": "Joins between it and the root.",
    "ties[].antiPriority": "What each of the ways costs.",
    "ties[].candidates": "The ways.",
    "ties[].candidates[].parent": 'Field name of what it would be joined to; `""` for the root.',
    "ties[].candidates[].relationship": "DataRelationship that would join them.",
    "candidates": "Snapshots that a run looks at, in its order; null with `--offline`.",
    "candidates[].time": "Snapshot time: that of the root's snapshot.",
    "candidates[].partition": "Folder below `data/`.",
    "candidates[].action": "What a run does with it; see below.",
    "candidates[].reason": "Why; see [reasons](report-json.md#snapshotreason).",
    "candidates[].sources": "By field name, the (newest) snapshot taken of each joined source.",
    "candidates[].histories": "By field name, all snapshots of a history, if several.",
    "candidates[].notes": "Warnings about histories that are not whole.",
    "candidates[].excluded": "Sources that the snapshot does without.",
    "candidates[].excluded[].fieldName": "Field of the output that is absent.",
    "candidates[].excluded[].reason": "Why; see [reasons](kinds/outputdataset.md#exclusionreason).",
    "deletes": "Snapshots that `snapshotAutoDelete` removes behind the publications, in the order "
    "of the run.",
    "deletes[].time": "Time of the snapshot.",
    "deletes[].rule": "The rule by which it goes, such as `maxOldSnapshots`.",
    "unforeseen": "Sources of which only the run knows everything, such as the columns of CSV and "
    "JSON without `schemaFields`; empty with `--offline`.",
    "unforeseen[].source": "Name of the DataSource.",
    "unforeseen[].message": "What is not foreseen, and why.",
    "collect": "What follows the candidates; null when none is to be published.",
    "collect.endedSnapshots": "Ended snapshots whose files may still be there: they are removed as "
    "far as `readerGrace` has passed, at most 100 snapshots a run.",
    "dataFindings": "What is wrong with the snapshots that sources list, and with files of "
    "published ones; each is a [DataFinding](kinds/outputdataset.md#datafinding).",
    "findings": "What validation, planning and preflight found.",
    "findings[].code": "Stable code; see [problems](problems.md).",
    "findings[].severity": "`ERROR` or `WARNING`.",
    "findings[].resource": "`Kind/name`.",
    "findings[].path": "Field path inside the resource.",
    "findings[].message": "What is wrong.",
    "findings[].hint": "What to do.",
}
"""By path of a key of `plan -o json`, its meaning. A test compares the keys with real plans."""

ACTIONS = {
    Action.PUBLISH: "It is woven and published.",
    Action.SKIP: "It is left out; the next run looks at it again, unless the reason lasts.",
    Action.FAIL: "It would fail: the run ends with exit code 1.",
}

CONTRACT = (
    "Programs may rely on this document: keys are added, never changed or removed. Instants are "
    "ISO 8601 in UTC.\n"
)


def plan_page() -> str:
    """The page of the plan."""
    return "\n".join([
        "# The plan as JSON\n",
        NOTE,
        "What `snaploom plan OUTPUT -f PATH -o json` prints, also when it finds errors.\n",
        CONTRACT,
        table(["key", "meaning"], [[f"`{key}`", text] for key, text in PLAN_KEYS.items()]),
        "## Actions\n",
        table(["action", "meaning"], [[f"`{a.value}`", ACTIONS[a]] for a in Action]),
        "## Example\n",
        block("sh", _command("plan", f"--now {NOW}")),
        block("json", sample("plan.json")),
    ])  # fmt: skip


def report_page() -> str:
    """The page of the Report."""
    schema = document_schema(Report)
    return "\n".join([
        "# The Report as JSON\n",
        NOTE,
        "What `snaploom run OUTPUT -f PATH -o json` prints when it ends, however it ends; with "
        "several outputs, a list of them.\n",
        CONTRACT,
        "A field without a value is left out.\n",
        "## Fields\n",
        Sections(schema, has_bounds=False, others=definition_pages(folder="kinds/")).text("Report"),
        "## Example\n",
        block("sh", _command("run", f"--now {NOW} --limit 1")),
        block("json", sample("report.json")),
    ])  # fmt: skip


COMPARISON_KEYS = {
    "output": "Name of the OutputDataset.",
    "same": "Whether rows and columns are the same; the exit code is 0 then, else 1.",
    "key": "Columns of `rootKey`, by which rows are matched.",
    "before": "The first of the two.",
    "before.time": "Snapshot time.",
    "before.sequence": "Manifest entry that published the version; null for a dry run.",
    "before.rows": "Its rows.",
    "after": "The second, with the same keys.",
    "after.time": "Snapshot time.",
    "after.sequence": "Manifest entry that published the version; null for a dry run.",
    "after.rows": "Its rows.",
    "rows": "What became of the rows.",
    "rows.added": "Rows whose key is only in `after`, or in more of its rows.",
    "rows.removed": "Rows whose key is only in `before`, or in more of its rows.",
    "rows.changed": "Rows whose key is in both, with another value in a column that both have.",
    "rows.unchanged": "Rows whose key is in both, with equal values.",
    "columns": "Columns that differ, those of the most rows first.",
    "columns[].column": "Path of the column; that of a struct where it is NULL on one side only.",
    "columns[].rows": "Rows in which it differs.",
    "schema": "How the columns themselves differ.",
    "schema.added": "Columns that only `after` has; their values are not compared.",
    "schema.added[].column": "Path of the column; `element`, `key` and `value` lead into lists "
    "and maps.",
    "schema.added[].type": "Its type.",
    "schema.removed": "Columns that only `before` has; their values are not compared.",
    "schema.removed[].column": "Path of the column.",
    "schema.removed[].type": "Its type.",
    "schema.retyped": "Columns that have another type in each.",
    "schema.retyped[].column": "Path of the column.",
    "schema.retyped[].before": "Its type in `before`.",
    "schema.retyped[].after": "Its type in `after`.",
    "schema.retyped[].compared": "Whether values are compared, under the wider of the two.",
    "samples": "Up to `--samples` rows of each kind, ordered by key; they are data.",
    "samples[].change": "`ADDED`, `REMOVED` or `CHANGED`.",
    "samples[].key": "Value of each column of `rootKey`, as text; null for NULL.",
    "samples[].columns": f"Columns that differ, at most {SAMPLE_COLUMNS}; none of rows that are "
    "new or gone.",
    "samples[].columns[].column": "Path of the column.",
    "samples[].columns[].before": f"Value as text, cut after {VALUE_LENGTH} characters; null for "
    "NULL. Bytes are hexadecimal, lists and maps JSON.",
    "samples[].columns[].after": "The same of the other one.",
    "samples[].omitted": "Columns that differ beside these.",
}
"""By path of a key of `diff --data -o json`, its meaning; a test compares the keys."""


def comparison_example() -> DataComparison:
    """A comparison with something of everything."""
    day = "2024-05-01T00:00:00Z"
    amount = ChangedValue("data.amount", "17.50", "5.00")
    return DataComparison(
        "orders-wide",
        ("order_id",),
        ComparedSnapshot(day, 3, 3),
        ComparedSnapshot(day, None, 3),
        CommonFields(
            "{}",
            (OneSided("data.tax", "long"),),
            (OneSided("data.note", "string"),),
            (Retyped("data.pieces", "integer", "long", True),),
        ),
        RowChanges(
            1,
            1,
            1,
            1,
            (ColumnChange("data.amount", 1),),
            (
                RowSample(RowChange.ADDED, (("order_id", "109"),)),
                RowSample(RowChange.CHANGED, (("order_id", "101"),), (amount,)),
            ),
        ),
    )


def comparison_page() -> str:
    """The page of a comparison of data."""
    document = json.dumps(comparison_example().document, indent=2)
    return "\n".join([
        "# A comparison of data as JSON\n",
        NOTE,
        "What `snaploom diff OUTPUT -f PATH --data A B -o json` prints; "
        "[Compare data](../how-to/compare-data.md) shows how to use it.\n",
        CONTRACT,
        table(["key", "meaning"], [[f"`{key}`", text] for key, text in COMPARISON_KEYS.items()]),
        "## Example\n",
        block("json", document + "\n"),
    ])  # fmt: skip


def sample(name: str) -> str:
    """A document as `snaploom` printed it."""
    return (SAMPLES / name).read_text(encoding="utf-8")


def _command(command: str, options: str) -> str:
    return f"snaploom {command} customer-wide -f examples/customer {options} -o json"
