"""A small run of its own, after which a JVM has loaded and compiled what runs need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from snaploom.jobs.declarations.declarationfiles import read_declarations, runnable_bundles
from snaploom.jobs.interruption import Interruption
from snaploom.jobs.job import Job
from snaploom.jobs.weaving.outputrun import weave_output
from snaploom.models.report import Report
from snaploom.models.times import now

CHILDREN = ("first", "second", "third")
"""Sources beside the root; each is joined by a key of its own."""
ROWS = 2000
"""Of each source: generated code is compiled, and no time goes into rows."""
_DAY = "2024-01-01"


def warm_up(spark: SparkSession) -> Report:
    """Weave sources that are made for it, and remove them; nobody is informed of it.

    Args:
        spark: a session with the settings of runs.

    Returns:
        What a run reports.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        row = sf.col("id")
        keys = [(row % (7 + number)).alias(child) for number, child in enumerate(CHILDREN)]
        values = [row.cast("string").alias("text"), (row / 3).alias("number")]
        for source in ("root", *CHILDREN):
            rows = spark.range(ROWS).select(row, *keys, *values).coalesce(1)
            rows.write.parquet(f"file:{folder}/{source}/{_DAY}")
        file = folder / "model.json"
        file.write_text(json.dumps(_declarations(folder)))
        (bundle,), _ = runnable_bundles(read_declarations([file]), ["output"])
        return weave_output(spark, bundle, Job(now(), now, lambda _: None, Interruption()))


def _declarations(folder: Path) -> Mapping[str, object]:
    """Everything as one List of Kubernetes."""
    items = [
        *(_resource("DataSource", name, _source(folder, name)) for name in ("root", *CHILDREN)),
        *(_resource("DataRelationship", name, _relationship(name)) for name in CHILDREN),
        _resource("OutputDataset", "output", _output(folder)),
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _resource(kind: str, name: str, spec: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _source(folder: Path, name: str) -> Mapping[str, object]:
    place = f"file://{folder}/{name}"
    found = {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}}
    return {
        "hdfsLike": {
            "format": "parquet",
            "sourceUriGlobs": [f"{place}/*/*.parquet"],
            "sourceUriPrefix": f"{place}/{{day:STRING}}/",
            "snapshot": found,
        }
    }


def _relationship(child: str) -> Mapping[str, object]:
    keys = {"root": child, child: "id"}
    return {
        "representations": [
            {
                "dataSources": [source],
                "joinKey": [{"fields": [{"fieldName": field, "dataType": "bigint"}]}],
            }
            for source, field in keys.items()
        ]
    }


def _output(folder: Path) -> Mapping[str, object]:
    interval = {"intervalStartDate": _DAY, "intervalLength": "1d"}
    window = {"timeBefore": "7d"}
    return {
        "dataModel": {
            "rootDataSource": {
                "dataSource": "root",
                "snapshotFilter": {"fromInterval": interval},
            },
            "otherDataSources": [
                {"dataSource": name, "fieldName": name, "snapshot": window} for name in CHILDREN
            ],
            "dataRelationships": [{"name": name} for name in CHILDREN],
        },
        "outputFolder": {
            "folderUri": f"file://{folder}/output/",
            "snapshotFormat": {"hivePartitioned": {}},
        },
    }
