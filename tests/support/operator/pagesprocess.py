"""`snaploom operator pages` as a process, teams with outputs, and users who ask for them."""

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from support.cluster.cluster import Cluster
from support.declared.declarations import Raw, document, model
from support.operator.servedprocess import ServedProcess
from support.operator.webhooks import HOST
from support.site.statuses import STATUS

KINDS = "outputdatasets,datasources,skippingindexes"
"""What a user must be able to list, as `kubectl create role` takes it."""
INDEX = document("SkippingIndex", "prices", {
    "target": {"outputDataset": "wide"},
    "store": {"parquet": {"location": "/data/indexes"}},
    "indexes": [{"type": "MIN_MAX", "column": "data.price"}],
    "run": {"suspend": True},
})  # fmt: skip


def declare(cluster: Cluster, namespace: str) -> None:
    """A published output with its sources and an index."""
    cluster.kubectl.apply(*model(), INDEX, namespace=namespace)
    set_status(cluster, namespace, STATUS)


def set_status(cluster: Cluster, namespace: str, status: Raw) -> None:
    """Write the status of the output, as the operator does."""
    cluster.kubectl(
        "patch", "outputdataset", "wide", "--namespace", namespace, "--subresource=status",
        "--type=merge", "--patch", json.dumps({"status": status}),
    )  # fmt: skip


def user_of(cluster: Cluster, namespace: str, name: str, kinds: str = KINDS) -> str:
    """A user who may list some kinds in a namespace; a token of theirs."""
    kubectl = cluster.kubectl
    where = ("--namespace", namespace)
    kubectl("create", "serviceaccount", name, *where)
    kubectl("create", "role", name, "--verb=list", f"--resource={kinds}", *where)
    account = f"--serviceaccount={namespace}:{name}"
    kubectl("create", "rolebinding", name, f"--role={name}", account, *where)
    return kubectl("create", "token", name, *where).strip()


def expired(token: str, signed_by: Path) -> str:
    """The same token as it was an hour before it ended, signed anew."""
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    ended = int(time.time()) - 3600
    claims |= {"exp": ended, "iat": ended - 600, "nbf": ended - 600}
    text = f"{head}.{_encoded(json.dumps(claims).encode())}"
    key = serialization.load_pem_private_key(signed_by.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    numbers = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{_encoded(b''.join(each.to_bytes(32, 'big') for each in numbers))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True)
class PageAnswer:
    """An answer over HTTP."""

    status: int
    text: str
    headers: Message


class PagesProcess(ServedProcess):
    """The pages of a cluster, served by a process."""

    def __init__(
        self, folder: Path, kubeconfig: Path, watched: Iterable[str] = (), **pages: Any
    ) -> None:
        super().__init__("pages", folder, kubeconfig)
        self.scheme = "https" if "certificateFolder" in pages else "http"
        settings = {"port": self.port, **pages}
        self.configure({"watchNamespaces": list(watched), "pages": settings})

    def address(self, path: str = "/") -> str:
        return f"{self.scheme}://{HOST}:{self.port}{path}"

    def asked(
        self,
        path: str = "/",
        token: str = "",
        method: str = "GET",
        trusted: ssl.SSLContext | None = None,
    ) -> PageAnswer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.address(path), method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60, context=trusted) as answer:
                return PageAnswer(answer.status, answer.read().decode(), answer.headers)
        except urllib.error.HTTPError as error:
            return PageAnswer(error.code, error.read().decode(), error.headers)
