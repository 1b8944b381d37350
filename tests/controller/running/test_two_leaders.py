"""Two operators that both believe to lead, over a real API server."""

from __future__ import annotations

from support.cluster.cluster import Cluster
from support.declared.declarations import model
from support.operator.operatorharness import RealHarness, is_ready

from snaploom_operator.cluster.port import SPARK_APPLICATIONS

WIDE = "OutputDataset/wide"


async def test_two_operators_at_once_start_one_run(
    harness: RealHarness, spark_plane: Cluster, namespace: str
) -> None:
    # Another Lease: neither hears of the other.
    second = RealHarness(harness.cluster, spark_plane.kubeconfig, namespace, lease="second")
    await second.start()
    try:
        await harness.apply(*model())
        ended = await harness.wait_for(WIDE, is_ready)
        assert (ended["status"]["lastRun"]["phase"], ended["status"]["lastRun"]["attempt"]) == (
            "Succeeded",
            0,
        )
        assert len(await harness.all(SPARK_APPLICATIONS)) == 1
        assert second.failure is None
    finally:
        await second.stop()
