"""Declarations in which every optional section is there, for recipes that change them."""

from pathlib import Path

import yaml
from support.declared.declarations import Raw

RUN: Raw = {
    "suspend": False,
    "schedule": {"cron": "0 0 1 1 *", "timeZone": "UTC", "startingDeadlineSeconds": 60},
    "concurrencyPolicy": "Forbid",
    "freshness": {"maxAge": {"year": 1}},
    "retry": {"limit": 2, "backoffSeconds": 5, "maxBackoffSeconds": 60},
    "startTimeoutSeconds": 300,
    "activeDeadlineSeconds": 3600,
    "snapshotsPerJob": 2,
    "historyLimit": {"successful": 2, "failed": 2},
    "deletionPolicy": "Retain",
    "acceptRootChange": False,
    "onEmptyRoot": "Fail",
    "adoptFolder": False,
    "spark": {
        "driver": {"cores": 1, "memory": "1g"},
        "executor": {"instances": 1},
        "sparkConf": {"spark.sql.shuffle.partitions": "2"},
        "podTemplate": {"labels": {"team": "shop"}},
    },
    "submitter": "Local",
    "queue": "team-a",
}
"""All of `spec.run` but the folder for checkpoints, which each output has of its own."""
METADATA: Raw = {
    "labels": {"team": "shop"},
    "annotations": {"snaploom.io/paused": "false", "snaploom.io/run": "once", "note": "uid: x"},
}


def completed(raw: Raw, folder: Path) -> Raw:
    """The declaration with every optional section of a resource that runs; others as they are."""
    if raw["kind"] not in ("OutputDataset", "SkippingIndex"):
        return raw
    run = {**RUN, "checkpointUri": f"{(folder / 'checkpoints').as_uri()}/"}
    return {
        **raw,
        "metadata": {**raw["metadata"], **METADATA},
        "spec": {**_sections(raw["kind"]), **raw["spec"], "run": run},
    }


def an_index(output: str, folder: Path) -> Raw:
    """An index over what an output publishes."""
    return {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "SkippingIndex",
        "metadata": {"name": "orders-amount"},
        "spec": {
            "target": {"outputDataset": output},
            "indexes": [{"type": "MIN_MAX", "column": "data.amount"}],
            "store": {"parquet": {"location": f"{(folder / 'index').as_uri()}/"}},
        },
    }


def complete_file(file: Path, *more: Raw) -> None:
    """Write a file of declarations anew, with every optional section, and with more of them."""
    raws = [*yaml.safe_load_all(file.read_text("utf-8")), *more]
    complete = [completed(raw, file.parent) for raw in raws]
    file.write_text(yaml.safe_dump_all(complete, sort_keys=False), "utf-8")


def _sections(kind: str) -> Raw:
    if kind == "SkippingIndex":
        return {"enabled": True, "refresh": {"mode": "AUTO", "trigger": "ON_PUBLISH"}}
    return {"checks": [{"name": "some-rows", "expression": "count(*) > 0", "mode": "FAIL"}]}
