"""What keeps others out of a job while it runs: settings of Spark that every run has.

Spark makes the secret of a run itself, where it runs on Kubernetes, and hands it to executors. An
administrator's own settings count before these; a resource may not name them.
"""

from __future__ import annotations

from collections.abc import Mapping

PROTECTION: Mapping[str, str] = {
    # Whoever reaches a port of driver or executors gets no further without the run's secret.
    "spark.authenticate": "true",
    # Messages and blocks between the pods; this version and cipher also notice changed bytes.
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    # What is spilled to the disks of nodes.
    "spark.io.encryption.enabled": "true",
    # The web page knows no password, and shows settings, plans and samples of data.
    "spark.ui.enabled": "false",
}
"""Settings by name."""
