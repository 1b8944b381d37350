"""Materializes the assets of a model by Dagster, and prints what became of them as JSON lines.

`python dagsterscript.py MODEL LATER`: before a second run, the file LATER becomes the second day of
`orders`, which has no customers.
"""

import json
import sys
from pathlib import Path

import dagster
from snaploom.orchestrators.dagster import output_assets


def described(result: dagster.ExecuteInProcessResult) -> dict[str, object]:
    failed = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    return {
        "success": result.success,
        "assets": [
            {
                "key": event.asset_key.to_user_string(),
                "rows": event.materialization.metadata["dagster/row_count"].value,
                "snapshots": event.materialization.metadata["snapshots"].value,
                "newest": event.materialization.metadata.get(
                    "newest", dagster.TextMetadataValue("")
                ).value,
            }
            for event in result.get_asset_materialization_events()
        ],
        "failures": [
            {
                "message": str(data.user_failure_data.description),
                "metadata": sorted(data.user_failure_data.metadata),
            }
            for data in failed
            if data.user_failure_data
        ],
    }


def main(model: str, later: str) -> None:
    assets = output_assets(model, key_prefix=["lake"])
    dependencies = {
        asset.key.to_user_string(): sorted(key.to_user_string() for key in asset.dependency_keys)
        for asset in assets
    }
    print(json.dumps(dependencies))
    with dagster.DagsterInstance.ephemeral() as instance:
        print(json.dumps(described(dagster.materialize(assets, instance=instance))))
        Path(later).rename(Path(later).parent / "orders" / "2024-05-02.parquet")
        again = dagster.materialize(assets, instance=instance, raise_on_error=False)
        print(json.dumps(described(again)))


main(*sys.argv[1:])
