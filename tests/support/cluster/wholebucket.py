"""The flights example with everything in a bucket: the same declarations, at other places."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from obstore import put
from obstore.store import S3Store
from support.cluster.wholeflights import PLACE, Flights
from support.servers.s3servers import ACCESS_KEY, BUCKET, S3Server

SECRET = "flights-bucket"
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")

Raw = dict[str, Any]


@dataclass(frozen=True)
class Bucket:
    """The example a second time, with everything in a bucket."""

    flights: Flights
    server: S3Server
    folder: Path
    """Where the server keeps the bucket's objects as files."""


def in_bucket(
    documents: Sequence[Raw], server: S3Server, place: str = PLACE, key: str = "flights"
) -> list[Raw]:
    """The declarations with their paths in the bucket, and the Secret with the keys to it.

    Pods have the keys from the Secret, and the rest of what they need as plain variables.

    Args:
        documents: declarations with paths of files.
        server: where the bucket is.
        place: folder in which these are.
        key: of the bucket, which takes the folder's place.
    """
    text = json.dumps([each for each in documents if each["kind"] != "SkippingIndex"])
    moved: list[Raw] = json.loads(text.replace(f"file://{place}/", f"s3://{BUCKET}/{key}/"))
    keys = {"secretRef": {"name": SECRET}}
    plain = [
        {"name": name, "value": value}
        for name, value in server.environment.items()
        if name not in _KEYS
    ]
    for document in moved:
        if document["kind"] == "OutputDataset":
            run = document["spec"].setdefault("run", {})
            template = {"podTemplate": {"env": plain, "envFrom": [keys]}}
            run["spark"] = run.get("spark", {}) | template
    return [secret_of(server), *moved]


def secret_of(server: S3Server) -> Raw:
    """The Secret with the keys to a server's bucket."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}}
    return secret | {"stringData": {name: server.environment[name] for name in _KEYS}}


def upload(server: S3Server, files: Mapping[str, Path]) -> None:
    """Put files into the bucket.

    Args:
        server: where the bucket is.
        files: paths by key.
    """
    store = S3Store(
        BUCKET,
        endpoint=server.endpoint,
        access_key_id=ACCESS_KEY,
        secret_access_key=server.secret,
        region="us-east-1",
        client_options={"allow_http": True},
    )
    for key, path in files.items():
        put(store, key, path.read_bytes())
