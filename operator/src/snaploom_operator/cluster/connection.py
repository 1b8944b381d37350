"""How the API server is found and who we are to it: a kubeconfig, or the pod's service account."""

from __future__ import annotations

import os
from pathlib import Path

import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from snaploom_operator.errors import SettingsInvalid

KUBECONFIG = "KUBECONFIG"
SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every pod."""
USER_AGENT = "snaploom-operator"


async def connect(kubeconfig: Path | None = None) -> ApiClient:
    """A client; close it.

    Args:
        kubeconfig: the file to use. None: the one that `KUBECONFIG` names; or else, in a pod, its
            service account; or else `~/.kube/config`. Nothing is ever written into it.

    Raises:
        SettingsInvalid: none of them is there, or it cannot be read.
    """
    configuration = Configuration()
    file = str(kubeconfig) if kubeconfig is not None else os.environ.get(KUBECONFIG)
    try:
        if file is None and SERVICE_HOST in os.environ:
            load_incluster_config(client_configuration=configuration)
        else:
            await load_kube_config(
                config_file=file or str(Path.home() / ".kube" / "config"),
                client_configuration=configuration,
                persist_config=False,
            )
        client = ApiClient(configuration)
    except (ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        raise SettingsInvalid(
            "there is no way to a Kubernetes cluster",
            found=str(error),
            expected="a kubeconfig, or a pod with a service account",
            hint="set KUBECONFIG to a kubeconfig that works with kubectl",
        ) from error
    client.user_agent = USER_AGENT
    return client
