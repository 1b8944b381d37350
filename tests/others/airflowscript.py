"""Runs a DAG file by Airflow, again and again, and prints what became of its tasks as JSON lines.

`python airflowscript.py FOLDER`: before the third run, the file `later.parquet` of the folder
becomes the second day of `orders`, which has no customers; before the fourth, `twice.parquet`
becomes that day of `customers`, which has each of them twice.
"""

import json
import sys
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select


def described(dag, seen):
    """States and tries of tasks, what they pushed, and the events of assets that are new."""
    run = dag.test()
    with create_session() as session:
        pushed = session.scalars(select(XComModel).where(XComModel.run_id == run.run_id))
        events = session.scalars(select(AssetEvent)).all()
        new = [one for one in events if one.id not in seen]
        seen.update(one.id for one in new)
        return {
            "tasks": {
                one.task_id: [one.state, one.try_number]
                for one in run.get_task_instances(session=session)
            },
            "pushed": {one.task_id: XComModel.deserialize_value(one) for one in pushed},
            "events": {one.asset.uri: one.extra for one in new},
        }


def main(folder):
    bag = DagBag()
    dag = bag.dags["shop"]
    parsed = {
        "faults": bag.import_errors,
        "spark": sorted(name for name in sys.modules if name in ("pyspark", "py4j", "pyarrow")),
        "tasks": {
            task.task_id: {
                "upstream": sorted(task.upstream_task_ids),
                "inlets": [asset.uri for asset in task.inlets],
                "outlets": [asset.uri for asset in task.outlets],
            }
            for task in dag.tasks
        },
    }
    print(json.dumps(parsed))
    seen = set()
    print(json.dumps(described(dag, seen)))
    print(json.dumps(described(dag, seen)))
    (folder / "later.parquet").rename(folder / "orders" / "2024-05-02.parquet")
    print(json.dumps(described(dag, seen)))
    (folder / "twice.parquet").rename(folder / "customers" / "2024-05-02.parquet")
    print(json.dumps(described(dag, seen)))


main(Path(sys.argv[1]))
