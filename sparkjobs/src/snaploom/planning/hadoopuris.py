"""The one mapping from the URI that a user writes to the one that Spark's Hadoop client takes.

Hadoop's client for S3 has the scheme `s3a`; `s3` and `s3n` were clients that it has no more, and
are what everybody else calls the same place. Files are listed, read and written as `s3a://`, and
URIs are compared in that form.
"""

from __future__ import annotations

import re

_S3 = re.compile(r"^s3n?://", re.IGNORECASE)


def hadoop_uri(uri: str) -> str:
    """The URI as Hadoop's `Path` takes it: `s3://` becomes `s3a://`, all others stay."""
    return _S3.sub("s3a://", uri)
