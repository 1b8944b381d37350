"""Runs that are about to be submitted, for tests of builders and submitters."""

from dataclasses import replace
from typing import Any

from support.declared.declarations import Raw, document

from snaploom.models.base import ApiModel
from snaploom.models.common import parse_instant
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import CurrentPhase, CurrentRun, SparkSettings, Trigger
from snaploom.models.skippingindex import SkippingIndex
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.submit.manifests import RunRequest, run_settings

RUN = "ods-orders-0a1b2c3d"
UID = "0f0e0d0c-1111-2222-3333-444455556666"
NAMESPACE = "default"
STARTED_AT = "2024-05-01T12:00:00.5Z"
OUTPUT: Raw = {
    "dataModel": {
        "rootDataSource": {
            "dataSource": "customers",
            "snapshotFilter": {
                "fromInterval": {
                    "preference": "NEWEST",
                    "intervalStartDate": {
                        "year": 2024, "month": 5, "day": 1, "hour": 0, "minute": 0, "second": 0,
                        "nano": 0, "timezone": "UTC",
                    },
                    "intervalLength": {"day": 1},
                }
            },
        }
    },
    "outputFolder": {"folderUri": "/out/", "snapshotFormat": {"hivePartitioned": {}}},
}  # fmt: skip


def an_output(
    name: str = "orders", *, uid: str = UID, namespace: str = NAMESPACE, **run: Any
) -> OutputDataset:
    """A stored output; settings of `spec.run` by their outside names."""
    raw = document("OutputDataset", name, {**OUTPUT, "run": run})
    raw["metadata"] |= {"uid": uid, "namespace": namespace, "generation": 1}
    return OutputDataset.parse(raw)


def a_request(
    owner: OutputDataset | SkippingIndex | None = None,
    *,
    name: str = RUN,
    settings: SparkSettings | None = None,
    **changes: Any,
) -> RunRequest:
    """A run of an output; changes of the run, of the operator's settings or of the request."""
    of = owner or an_output()
    operator = OperatorSettings(spark=settings or OperatorSettings().spark, log_format="text")
    run = CurrentRun(
        name=name,
        id=name,
        phase=CurrentPhase.SUBMITTING,
        since=STARTED_AT,
        started_at=STARTED_AT,
        attempt=1,
        trigger=Trigger(declarations="d" * 16, token="by hand"),
    )
    request = RunRequest(
        owner=of,
        run=run.model_copy(update=_taken(changes, CurrentRun)),
        started_at=parse_instant(STARTED_AT),
        spark=run_settings(of.spec.run.spark, operator),
        bundle=f"{name}-bundle",
        settings=operator.model_copy(update=_taken(changes, OperatorSettings)),
    )
    return replace(request, **changes)


def _taken(changes: dict[str, Any], model: type[ApiModel]) -> dict[str, Any]:
    return {key: changes.pop(key) for key in [*changes] if key in model.model_fields}


def stored(manifest: Any, status: Raw | None = None) -> Raw:
    """An object as an API server returns it."""
    metadata = manifest["metadata"] | {
        "uid": "aaaaaaaa-0000-0000-0000-000000000001",
        "resourceVersion": "7",
        "creationTimestamp": "2024-05-01T12:00:01Z",
    }
    return {**manifest, "metadata": metadata, **({} if status is None else {"status": status})}
