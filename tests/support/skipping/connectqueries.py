"""Sessions of a client of Spark Connect without py4j: rows of a query, and its plan, as JSON.

It runs with the client's package `pyspark` first on its path. Standard input is the URL of a
server, a folder of Parquet files, a condition, and the settings of each session.
"""

import io
import json
import sys
from contextlib import redirect_stdout
from importlib import import_module


def main() -> None:
    url, folder, condition, sessions = json.load(sys.stdin)
    builder = import_module("pyspark.sql").SparkSession.builder
    answers = []
    for settings in sessions:
        spark = builder.remote(url).create()
        for name, value in settings.items():
            spark.conf.set(name, value)
        frame = spark.read.parquet(folder).where(condition)
        with redirect_stdout(io.StringIO()) as plan:
            frame.explain()
        answers.append((sorted(map(tuple, frame.collect())), plan.getvalue()))
        spark.stop()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
