"""Servers in the URIs of files: none that a machine or a cloud gives to itself.

Hadoop's clients connect to the authority of a URI: `hdfs://HOST:PORT/`, `webhdfs://HOST/`,
`abfss://CONTAINER@HOST/`. Every text of a resource that begins like a URI is looked at, so that no
field is forgotten. Names are resolved by these clients, and are judged as names here. Azure's
client sends its token to the host that a URI names, so that this has to be one of Azure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from snaploom.models.allowances import Allowances
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.resource import Resource
from snaploom.planning.addresses import (
    METADATA_NAMES,
    OF_ADMINISTRATOR,
    EndpointRules,
    literal_address,
    plain_host,
    refusal_of_address,
)
from snaploom.planning.commonchecks.modelfields import texts_with

_URI = re.compile(r"\s*+([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)")
_URI_MARK = "://"
"""The mark of every URI that names a server."""
_PORT = re.compile(r":[0-9]*$")
_OF_BUCKETS = frozenset({"cos", "cosn", "gs", "obs", "oss", "s3", "s3a", "s3n"})
"""Schemes whose authority is the name of a bucket, and no server."""
_OF_AZURE = frozenset({"abfs", "abfss", "adl", "wasb", "wasbs"})
_AZURE = (
    ".azuredatalakestore.net", ".blob.storage.azure.net", ".core.chinacloudapi.cn",
    ".core.cloudapi.de", ".core.usgovcloudapi.net", ".core.windows.net", ".dfs.storage.azure.net",
    ".fabric.microsoft.com",
)  # fmt: skip
"""How hosts of Azure's stores end, by its documentation of endpoints and of OneLake."""


def place_findings(resource: Resource, allow: Allowances) -> tuple[Finding, ...]:
    """An error for every URI that leads to a metadata service or to no address of a server.

    The list `endpoints` of `allow` may name hosts that are Azure's under another name.
    """
    rules = EndpointRules(entries=allow.endpoints)
    return tuple(
        make_finding(
            "SL190",
            f"this server is not connected to: {why}",
            resource=resource.identity,
            path=path,
            found=host,
            expected="a place of files",
            hint="name the bucket, or the server of the files by its host name",
        )
        for path, text in texts_with(resource, _URI_MARK)
        for host, why in _refused(text, rules)
    )


def _refused(text: str, rules: EndpointRules) -> Iterator[tuple[str, str]]:
    found = _URI.match(text)
    if found is None or found[1].lower() in _OF_BUCKETS:
        return
    for host in found[2].rpartition("@")[2].split(","):
        plain = plain_host(_PORT.sub("", host) if _has_port(host) else host)
        why = _refusal_of(plain)
        if not why and found[1].lower() in _OF_AZURE and not plain.endswith(_AZURE):
            why = "" if rules.names(plain, 443) else "it is no host of Azure's stores"
        if why:
            yield host, why


def _has_port(host: str) -> bool:
    """Whether a colon begins a port: an IPv6 address has more than one, or brackets."""
    return host.count(":") == 1 or "]:" in host


def _refusal_of(host: str) -> str:
    if "." in host and host in METADATA_NAMES:
        return "it is a metadata service"
    address = literal_address(host)
    return "" if address is None else refusal_of_address(address, OF_ADMINISTRATOR, host, 0)
