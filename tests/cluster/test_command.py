"""`make cluster`, as a person uses it."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from support.cluster.cluster import Cluster

TESTS = Path(__file__).parents[1]


@contextmanager
def commanded(folder):
    command = [sys.executable, "-m", "support.cluster.clustercommand", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as started:
        try:
            yield started
        finally:
            started.send_signal(signal.SIGTERM)


def test_cluster_of_a_person_is_reached_by_what_it_prints(tmp_path):
    with commanded(tmp_path / "cluster") as started:
        lines = iter(started.stdout.readline, "")
        line = next(line for line in lines if "export KUBECONFIG=" in line)
        kubeconfig = Path(re.search(r"export KUBECONFIG=(\S+)", line)[1])
        kubectl = Cluster(tmp_path, kubeconfig).kubectl
        assert "outputdatasets" in kubectl("api-resources", "--api-group=snaploom.io")
        with commanded(tmp_path / "cluster") as second:
            assert second.wait() == 1
            output = second.stderr.read()
        assert output == f"There is one already: export KUBECONFIG={kubeconfig}\n"
        started.send_signal(signal.SIGTERM)
        assert started.stdout.read().endswith("Stopped.\n")
        assert started.wait() == 0
