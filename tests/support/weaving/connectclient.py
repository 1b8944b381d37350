"""A client of Spark Connect without py4j: reads folders, and prints what it reads as JSON.

It runs with the client's package `pyspark` first on its path. Standard input is the URL of a
server, folders, and arguments of `snaploom.read`; each answer is a schema and rows, or an error.
"""

import json
import sys
from importlib import import_module


class Blocked:
    """An environment without py4j, which the tests' own has."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "py4j":
            raise ImportError("py4j is blocked")


def main() -> None:
    sys.meta_path.insert(0, Blocked())
    snaploom, sql = import_module("snaploom"), import_module("pyspark.sql")
    url, folders, reads = json.load(sys.stdin)
    spark = sql.SparkSession.builder.remote(url).getOrCreate()

    def answer(folder, how):
        try:
            frame = snaploom.read(spark, folder, **how)
            return frame.schema.json(), sorted(repr(row.asDict(True)) for row in frame.collect())
        except snaploom.SnaploomError as error:
            return type(error).__name__, error.message

    print(json.dumps([[answer(folder, how) for how in reads] for folder in folders]))


if __name__ == "__main__":
    main()
