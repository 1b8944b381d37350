"""Holds a JVM of Spark for a command that is to come: a child process of the server of sessions.

Reads one line with a launch, starts the JVM as a command would, has it do some work, and prints
where it is reached. The JVM ends with this process, which ends when its standard input is closed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping

from pyspark import SparkContext
from pyspark.sql import SparkSession

from snaploom.confidential import remember_environment, without_secrets
from snaploom.errors import SnaploomError
from snaploom.jobs.session.jvmstart import start_context, translated_start
from snaploom.jobs.session.loggers import silence_py4j
from snaploom.jobs.sessionserver.launch import from_line
from snaploom.jobs.sessionserver.messages import Address, Failure, line_of
from snaploom.jobs.warmup import warm_up
from snaploom.processend import end_process

APPLICATION = "snaploom"
"""Name of the application in which any command may come to work."""


def main() -> int:
    """Prepare, and wait for the end; the exit code."""
    launch = from_line(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.umask(launch.umask)
    silence_py4j()
    remember_environment(os.environ)
    try:
        start_context(APPLICATION, launch.settings, is_small=launch.is_small)
        with translated_start():
            _prepare(launch.settings)
    except SnaploomError as error:
        _print(Failure(without_secrets(error.found or error.message)))
        return error.exit_code
    gateway = SparkContext._gateway
    assert gateway is not None  # made by `start_context`
    parameters = gateway.gateway_parameters
    gateway.close()
    _print(Address(parameters.port, parameters.auth_token))
    gateway.proc.wait()
    return 1


def _print(message: Address | Failure) -> None:
    """Answer the server."""
    sys.stdout.buffer.write(line_of(message))
    sys.stdout.flush()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def _prepare(settings: Mapping[str, str]) -> None:
    """Load what commands need; sessions and file systems that were opened for it are dropped."""
    builder = SparkSession.Builder()
    for key, value in settings.items():
        builder = builder.config(key, value)
    warm_up(builder.getOrCreate())
    jvm = SparkContext._jvm
    assert jvm is not None
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    jvm.SparkSession.clearActiveSession()
    jvm.SparkSession.clearDefaultSession()


if __name__ == "__main__":
    end_process(main())
