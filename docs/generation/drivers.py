"""The page of JDBC drivers, from the list by which they are installed."""

from __future__ import annotations

from generation.markdown import NOTE, table
from snaploom.sources.databases.drivers import COMET_JAR, DRIVER_JARS

_INTRODUCTION = """\
What `snaploom drivers install` knows by name. The image of Spark for clusters has the same jars,
and the tests read databases with them. [Read a database](../how-to/read-a-database.md#the-driver)
shows how they are used.
"""
_ACCELERATOR = f"""
`{COMET_JAR.name}` is no driver, but the [accelerator of Spark](../how-to/run-it-natively.md):
`{COMET_JAR.coordinates}`, SHA-256 `{COMET_JAR.sha256}`. No image has it.
"""


def drivers_page() -> str:
    """The page."""
    rows = [
        [f"`{jar.name}`", f"`{jar.name.upper()}`", f"`{jar.coordinates}`", f"`{jar.sha256}`"]
        for jar in DRIVER_JARS
    ]
    columns = ["name", "`spec.jdbc.driver`", "Maven coordinates", "SHA-256 of the jar"]
    return "\n".join(["# JDBC drivers\n", NOTE, _INTRODUCTION, table(columns, rows), _ACCELERATOR])
