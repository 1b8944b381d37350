"""A server of Spark Connect whose clients' queries skip files.

`spark-submit .../snaploom/run/indexes/connectserver.py s3a://lake/indexes` serves until SIGTERM or
Ctrl-C. It is Spark's own server; sessions of clients are made from the one in which skipping is
enabled, and each may switch it off by `spark.snaploom.skipping.enabled`. Spark's settings are those
of `spark-submit`; without `spark.connect.grpc.binding.address` only this machine is served, since a
client may do what the server may.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.confidential import remember_environment
from snaploom.errors import SnaploomError
from snaploom.localfiles import end_process
from snaploom.run.joblog import error_lines, silence_py4j
from snaploom.run.runevents import TICK_SECONDS, signal_handlers
from snaploom.run.session.jvm import SparkNotStarted
from snaploom.run.session.spark import SparkStopped
from snaploom.skipping.spark.interfaces.enable import enable
from snaploom.spark.jvm import jvm_of

ADDRESS = "spark.connect.grpc.binding.address"
"""Setting of Spark's: where the server listens; without it, everywhere."""
THIS_MACHINE = "127.0.0.1"


@contextmanager
def connect_server(spark: SparkSession) -> Iterator[str]:
    """Serve sessions that are made from one of this process, as long as the block lasts.

    Yields:
        The URL for clients on this machine.
    """
    package = jvm_of(spark).org.apache.spark.sql.connect.service
    service = getattr(getattr(package, "SparkConnectService$"), "MODULE$")
    try:
        service.start(spark.sparkContext._jsc.sc())
    except (Py4JError, PySparkException) as error:
        raise _not_started(str(error)) from error
    try:
        yield f"sc://{THIS_MACHINE}:{service.localPort()}"
    finally:
        with suppress(Py4JError):  # Spark may be gone
            nothing = jvm_of(spark).scala.Option.apply(None)
            service.stop(nothing, nothing)


def main(arguments: Sequence[str] | None = None, write: Callable[[str], object] = print) -> int:
    """Serve until the process is asked to end; the exit code."""
    parser = argparse.ArgumentParser(
        description="Serve Spark Connect; queries of clients skip files by indexes."
    )
    parser.add_argument("locations", nargs="+", help="folders below which indexes are kept")
    asked = parser.parse_args(arguments)
    remember_environment(os.environ)
    silence_py4j()
    with signal_handlers() as interruption:
        try:
            spark = _session()
            enable(spark, *asked.locations)
            with connect_server(spark) as url:
                write(f"serving Spark Connect at {url}")
                while not interruption.is_requested:
                    _require_spark(spark)
                    time.sleep(TICK_SECONDS)
            spark.stop()
        except SnaploomError as error:
            for line in error_lines(error):
                sys.stderr.write(f"{line}\n")
            return error.exit_code
    return 0


def _session() -> SparkSession:
    """A session with the settings of `spark-submit`."""
    settings = SparkConf()
    settings.setIfMissing(ADDRESS, THIS_MACHINE)
    try:
        return SparkSession.Builder().config(conf=settings).getOrCreate()
    except (Py4JError, PySparkException, OSError) as error:
        raise _not_started(str(error)) from error


def _require_spark(spark: SparkSession) -> None:
    """Refuse to go on where Spark has ended, as with the JVM of `spark-submit`."""
    with suppress(Py4JError):
        if not spark.sparkContext._jsc.sc().isStopped():
            return
    raise SparkStopped("Spark was shut down while it served", hint="start the server again")


def _not_started(found: str) -> SparkNotStarted:
    return SparkNotStarted(
        "Spark Connect cannot be served",
        found=found.strip().splitlines()[0],
        expected="a free port, and a Spark with the server of Spark Connect (4.1 to 4.3)",
        hint="choose another port: --conf spark.connect.grpc.binding.port=15003",
    )


if __name__ == "__main__":
    end_process(main())
