"""Spark settings of every run that protect its connections and temporary files.

On Kubernetes Spark generates the secret of a run, and passes it to executors. An administrator's
settings take precedence over these; a resource may not set them.
"""

from __future__ import annotations

from collections.abc import Mapping

PROTECTION: Mapping[str, str] = {
    # Connections to ports of driver and executors need the run's secret.
    "spark.authenticate": "true",
    # Messages and blocks between the pods; this version and cipher also notice changed bytes.
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    # What is spilled to the disks of nodes.
    "spark.io.encryption.enabled": "true",
    # The web UI has no authentication, and shows settings, plans and samples of data.
    "spark.ui.enabled": "false",
}
"""Settings by name."""
