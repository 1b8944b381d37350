"""kopf's connection to the API server, with the same configuration as `cluster`."""

from __future__ import annotations

from pathlib import Path

import kopf

from snaploom_operator.cluster.connection import connect


async def connection_info(kubeconfig: Path | None, context: str | None) -> kopf.ConnectionInfo:
    """The connection of kopf; read at each call, since tokens and certificates expire.

    Args:
        kubeconfig: see `connect`.
        context: see `connect`.

    Raises:
        SettingsInvalid: no cluster is configured.
    """
    client = await connect(kubeconfig, context)
    try:
        known = client.configuration
        authorization = await known.get_api_key_with_prefix("BearerToken", "authorization") or ""
        scheme, _, token = authorization.partition(" ")
        return kopf.ConnectionInfo(
            server=known.host,
            ca_path=known.ssl_ca_cert,
            insecure=not known.verify_ssl,
            scheme=scheme if token else None,
            token=token or None,
            certificate_path=known.cert_file,
            private_key_path=known.key_file,
            proxy_url=known.proxy,
        )
    finally:
        await client.close()
