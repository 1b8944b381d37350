"""`snaploom operator webhook` as a process, and a cluster that asks it."""

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.cluster.cluster import Cluster
from support.cluster.clusterkubectl import Kubectl
from support.declared.declarations import Raw, output, spoilt
from support.documentation.commands import DEADLINE
from support.operator.servedprocess import ServedProcess
from support.operator.webhooks import HOST, install
from support.servers.certificates import Authority, Issued

WRONG = spoilt(output("wrong"), "spec.outputFolder.folderUri", "relative/")
"""What the schema allows, and only the webhook refuses."""


class WebhookProcess(ServedProcess):
    """One webhook, of the whole cluster or of namespaces."""

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        issued: Issued,
        watched: Iterable[str] = (),
        **admission: Any,
    ) -> None:
        super().__init__("webhook", folder, kubeconfig, "--drain", "0")
        self.certificates = folder / "certificates"
        install(issued, self.certificates)
        certificates = {"certificateFolder": str(self.certificates)}
        own = {"port": self.port, **certificates, **admission}
        self.configure({"admission": own, "watchNamespaces": list(watched)})


def run_kubectl(kubectl: Kubectl, *arguments: str, stdin: Raw | None = None) -> tuple[int, str]:
    """Exit code of kubectl, and all that it prints."""
    done = subprocess.run(
        [*kubectl.program, *arguments],
        env=os.environ | {"KUBECONFIG": str(kubectl.kubeconfig), "HOME": str(kubectl.home)},
        input=json.dumps(stdin) if stdin is not None else "",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def applied(kubectl: Kubectl, namespace: str, raw: Raw, *more: str) -> tuple[int, str]:
    """What kubectl prints when one object is applied."""
    return run_kubectl(kubectl, "apply", "--namespace", namespace, *more, "-f", "-", stdin=raw)


def configuration(name: str, namespace: str, port: int, bundle: bytes, policy: str) -> Raw:
    """Asks a webhook at a port about one namespace, so that no other test is disturbed."""
    kinds = ("datasources", "datarelationships", "outputdatasets", "skippingindexes")
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "validate.snaploom.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 5,
                "failurePolicy": policy,
                "clientConfig": {
                    "url": f"https://{HOST}:{port}/validate",
                    "caBundle": base64.b64encode(bundle).decode(),
                },
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": ["snaploom.io"],
                        "apiVersions": ["v1alpha1"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": [*kinds, "fieldtransformers", "metadataapplicators"],
                        "scope": "Namespaced",
                    }
                ],
            }
        ],
    }


@contextmanager
def asked_about(
    cluster: Cluster, namespace: str, port: int, authority: Authority, policy: str = "Fail"
) -> Iterator[None]:
    """Have the API server ask a webhook about one namespace."""
    bundle = authority.certificate.read_bytes()
    raw = configuration(namespace, namespace, port, bundle, policy)
    run_kubectl(cluster.kubectl, "apply", "-f", "-", stdin=raw)
    try:
        yield
    finally:
        run_kubectl(cluster.kubectl, "delete", "validatingwebhookconfiguration", namespace)


def await_text(look: Callable[[], str], text: str) -> str:
    """Wait until an output contains a text."""
    deadline = time.monotonic() + DEADLINE
    while text not in (seen := look()):
        assert time.monotonic() < deadline, f"{text!r} did not come: {seen}"
        time.sleep(0.05)
    return seen


def await_asked(cluster: Cluster, namespace: str) -> None:
    """Wait until the API server asks: it learns of a configuration a little later."""
    await_text(
        lambda: applied(cluster.kubectl, namespace, WRONG, "--dry-run=server")[1], "absolute"
    )
