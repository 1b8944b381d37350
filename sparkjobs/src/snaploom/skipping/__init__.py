"""Data skipping: indexes over files that anyone wrote, used by ordinary Spark queries.

`enable(spark, ...)` is all a session needs. A file is skipped only when what is known about exactly
this file, read exactly this way, proves that no row of it can be in the result; every doubt
keeps it.
"""

from __future__ import annotations
