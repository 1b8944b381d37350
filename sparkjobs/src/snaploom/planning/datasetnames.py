"""Names of datasets by OpenLineage's naming rules, so that other tools use the same names.

A dataset is a folder of files, or a table. Its namespace is the place, its name the data. Databases
that the rules do not list are named in the same way, by the kind of the database.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Schemes of Hadoop's clients, with the scheme in general use."""
_BUCKETS = ("s3", "gs")
"""Stores of objects, whose keys begin without a slash."""


@dataclass(frozen=True, order=True)
class DatasetName:
    """The name of a dataset."""

    namespace: str
    """Where it is, such as `s3://lake` or `postgres://db:5432`."""
    name: str
    """Its name within the namespace, such as `raw/orders` or `shop.public.orders`."""


def place_dataset(uri: str) -> DatasetName:
    """The dataset that is everything at a place: a folder, a file, or an absolute path."""
    parts = urlsplit(uri)
    scheme = _SCHEMES.get(parts.scheme.lower(), parts.scheme.lower())
    path = re.sub(r"/+", "/", f"/{parts.path}").rstrip("/") or "/"
    if scheme in ("", "file"):
        return DatasetName("file", path)
    if scheme in _BUCKETS:
        path = path[1:] or "/"
    return DatasetName(f"{scheme}://{parts.netloc}", path)
