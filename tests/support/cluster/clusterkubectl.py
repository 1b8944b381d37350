"""Asks a cluster as a person does: kubectl, by a kubeconfig."""

import base64
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.servers.certificates import Issued

Raw = dict[str, Any]


class KubectlFailed(Exception):
    """Kubectl ended with a code other than expected; `stderr` is its output."""

    def __init__(self, arguments: tuple[str, ...], code: int, stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)} ended with {code}: {stderr}")
        self.code = code
        self.stderr = stderr


@dataclass(frozen=True)
class Kubectl:
    """`kubectl("get", "pods")` is what it prints."""

    program: tuple[str, ...]
    kubeconfig: Path
    home: Path
    """Folder of its caches, so that nobody's own settings are read."""

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Standard output.

        Args:
            arguments: what stands behind `kubectl`.
            stdin: what it reads, for `-f -`.

        Raises:
            KubectlFailed: it ended with a code other than 0.
        """
        done = subprocess.run(
            [*self.program, *arguments],
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)},
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlFailed(arguments, done.returncode, done.stderr or done.stdout)
        return done.stdout

    def get(self, kind: str, name: str, namespace: str | None = None) -> Raw:
        """An object as the API server has it, without the notes on who manages which field."""
        result: Raw = json.loads(self("get", kind, name, *_in(namespace), "--output", "json"))
        return result

    def list(self, kind: str, namespace: str | None = None) -> list[Raw]:
        result: list[Raw] = json.loads(self("get", kind, *_in(namespace), "--output", "json"))[
            "items"
        ]
        return result

    def apply(self, *objects: Raw, namespace: str | None = None, server_side: bool = True) -> str:
        """Apply objects, as one request each; returns the output of kubectl."""
        how = ["--server-side"] if server_side else []
        everything = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self("apply", *how, *_in(namespace), "-f", "-", stdin=json.dumps(everything))


def _in(namespace: str | None) -> tuple[str, ...]:
    return () if namespace is None else ("--namespace", namespace)


def write_kubeconfig(path: Path, server: str, authority: bytes, user: Raw) -> Path:
    """Write a kubeconfig that needs no other file; its path.

    Args:
        path: the file.
        server: URL of the API server.
        authority: who signed its certificate, as PEM.
        user: how the client is known: `certificate_user` or `{"token": ...}`.
    """
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "snaploom",
        "clusters": [{"name": "snaploom", "cluster": cluster}],
        "users": [{"name": "snaploom", "user": user}],
        "contexts": [{"name": "snaploom", "context": {"cluster": "snaploom", "user": "snaploom"}}],
    }
    path.write_text(json.dumps(config, indent=2))  # JSON is YAML
    path.chmod(0o600)
    return path


def certificate_user(issued: Issued) -> Raw:
    """A user of a kubeconfig with a client certificate."""
    return {
        "client-certificate-data": _encoded(issued.certificate.read_bytes()),
        "client-key-data": _encoded(issued.key.read_bytes()),
    }


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
