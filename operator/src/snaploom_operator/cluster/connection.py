"""Connects to the API server by a kubeconfig or the pod's service account."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.request import getproxies_environment

import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import (
    ConfigException,
    list_kube_config_contexts,
    load_incluster_config,
    load_kube_config,
)

from snaploom_operator.errors import SettingsInvalid

KUBECONFIG = "KUBECONFIG"
SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every pod."""
USER_AGENT = "snaploom-operator"
"""User agent of the operator in audit logs, and the name of its field manager."""
COMMAND_LINE = "snaploom-cli"
"""User agent of the command line, so that its writes have another field manager."""
WEBHOOK = "snaploom-webhook"
"""User agent of the webhook, which writes nothing."""
PAGES = "snaploom-pages"
"""User agent of the server of pages, which writes nothing."""

_UNREADABLE = (
    ConfigException, OSError, ValueError, yaml.YAMLError,
    AttributeError, LookupError, TypeError,  # raised for a malformed kubeconfig
)  # fmt: skip
DEFAULT_FILE = str(Path.home() / ".kube" / "config")
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Kubernetes puts it into every pod that has a service account."""


async def connect(
    kubeconfig: Path | None = None, context: str | None = None, user_agent: str = USER_AGENT
) -> ApiClient:
    """Create a client, which the caller closes.

    Args:
        kubeconfig: the kubeconfig, which is never written. None: the file that `KUBECONFIG` names;
            else, in a pod, its service account; else `~/.kube/config`.
        context: context of the kubeconfig; None for its current one.
        user_agent: the tool that connects.

    Raises:
        SettingsInvalid: there is none of them, or it cannot be read.
    """
    configuration = Configuration()
    file = _file(kubeconfig)
    try:
        if is_in_pod(kubeconfig):
            load_incluster_config(client_configuration=configuration)
        else:
            await load_kube_config(
                config_file=_existing(file),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
        # Reading a proxy's password from ~/.netrc costs a thread and a tenth of the time of each
        # request; aiohttp does it even without a proxy.
        configuration.client_session_kwargs = {"trust_env": bool(getproxies_environment())}
        # Each watch of a kind in a namespace keeps a connection; the library's limit is 100.
        configuration.connection_pool_maxsize = 0
        client = ApiClient(configuration)
    except _UNREADABLE as error:
        raise _no_cluster(str(error)) from error
    client.user_agent = user_agent
    return client


def is_in_pod(kubeconfig: Path | None = None) -> bool:
    """Return whether `connect` uses the service account of a pod."""
    return _file(kubeconfig) is None and SERVICE_HOST in os.environ


def _file(kubeconfig: Path | None) -> str | None:
    return str(kubeconfig) if kubeconfig is not None else os.environ.get(KUBECONFIG)


def default_namespace(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """The namespace that kubectl would use: that of the context, or of the pod, or `default`.

    Raises:
        SettingsInvalid: the kubeconfig cannot be read, or has no such context.
    """
    if is_in_pod(kubeconfig):
        return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.is_file() else "default"
    try:
        contexts, current = list_kube_config_contexts(_existing(_file(kubeconfig)))
    except _UNREADABLE as error:
        raise _no_cluster(str(error)) from error
    chosen = (
        current if context is None else next((c for c in contexts if c["name"] == context), None)
    )
    if chosen is None:
        raise _no_cluster(
            f"no context {context!r}; there are: {', '.join(c['name'] for c in contexts)}"
        )
    return str(chosen["context"].get("namespace") or "default")


def _existing(file: str | None) -> str:
    """The path list of kubeconfigs; checked because the client library prints if none exists."""
    chosen = file or DEFAULT_FILE
    if not any(Path(part).is_file() for part in chosen.split(os.pathsep)):
        raise FileNotFoundError(f"there is no file {chosen}")
    return chosen


def _no_cluster(found: str) -> SettingsInvalid:
    return SettingsInvalid(
        "no Kubernetes cluster is configured",
        found=found,
        expected="a kubeconfig, or a pod with a service account",
        hint="set KUBECONFIG to a kubeconfig that works with kubectl",
    )
