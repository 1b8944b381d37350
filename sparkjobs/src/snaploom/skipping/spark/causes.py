"""What went wrong in Spark, in one line for people."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError


def cause_of(error: Exception) -> str:
    """The first line that says something; Spark's messages may begin with an empty one."""
    told = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    return told.strip().split("\n", 1)[0].strip() or type(error).__name__
