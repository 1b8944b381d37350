"""`make cluster-demo`: chart, example and query on a cluster of this machine.

With KEEP=1 it stays until Ctrl-C, for inspection.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

from support.cluster.chart import NAMESPACE
from support.cluster.clusternode import what_is_missing
from support.cluster.wholecluster import IMAGES, Stages, WholeCluster, whole_cluster
from support.cluster.wholeflights import EXAMPLE, INDEX, OUTPUT, Flights
from support.cluster.wholeflights import PLACE as PLACE_IN_PODS
from support.documentation.examples import BIN
from support.servers.gotools import go_tool

FOLDER = Path(__file__).parents[3] / "build" / "cluster-demo"
MONTHS = 2


def main() -> None:
    """Run the demo, and clean up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if missing := what_is_missing(FOLDER.parents[1], IMAGES):
        sys.exit(f"This machine cannot have a node, for want of: {', '.join(missing)}.")
    stages = Stages()
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        with whole_cluster(FOLDER / "cluster", stages) as whole:
            _go(whole, stages)
            print(f"\nTimes of the stages:\n{stages.table()}")
            if os.environ.get("KEEP"):
                _stay(whole)
    except KeyboardInterrupt:
        print("Stopped.")
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


def _go(whole: WholeCluster, stages: Stages) -> None:
    flights = Flights(whole)
    whole.create_namespaces(NAMESPACE, flights.namespace)
    _print_command("helm install snaploom charts/snaploom --namespace snaploom-system ...")
    with stages.stage("chart installed"):
        whole.install(flights.namespace)
    print(whole.cluster.kubectl("get", "pods", "--namespace", NAMESPACE))
    _print_command("kubectl apply -f examples/cluster/flights -f examples/flights")
    with stages.stage("data copied into a volume"):
        flights.open_console()
        flights.copy_in(flights.sources(FOLDER / "data", MONTHS))
    with stages.stage("first snapshots"):
        flights.kubectl("apply", "--filename", str(EXAMPLE))
        flights.wait(OUTPUT)
    with stages.stage("index built"):
        flights.wait(INDEX)
    with stages.stage("webhook ready"):
        whole.await_webhook()
    for command in (("get", "snaploom"), ("get", "sparkapplications"), ("get", "pods")):
        _print_command(f"kubectl {' '.join(command)}")
        print(flights.kubectl(*command))
    _print_command("snaploom status flights-wide")
    print(flights.snaploom("status", "flights-wide"))
    _print_command(f"kubectl exec --stdin console -- python3 - < {EXAMPLE.name}/query.py")
    with stages.stage("query"):
        print(flights.python(EXAMPLE / "query.py"))
    with stages.stage("next snapshot"):
        flights.copy_in(flights.sources(FOLDER / "data", MONTHS + 1))
        _print_command(f"snaploom trigger {OUTPUT}")
        print(flights.snaploom("trigger", OUTPUT))
        flights.wait(OUTPUT, f"jsonpath={{.status.snapshotCount}}={MONTHS + 1}")
    print(flights.kubectl("get", "snaploom"))


def _stay(whole: WholeCluster) -> None:
    program = " ".join(whole.cluster.kubectl.program)
    print(
        f"\nIn another terminal:\n\n"
        f"  export KUBECONFIG={whole.cluster.kubeconfig}\n"
        f"  {program} --namespace flights get snaploom\n\n"
        f"  {BIN / 'snaploom'} --namespace flights status\n"
        f"  {go_tool('helm')} --namespace {NAMESPACE} list\n\n"
        f"Data is in {PLACE_IN_PODS} of the pod console. Ctrl-C ends it all.",
        flush=True,
    )
    while True:
        time.sleep(1)


def _print_command(command: str) -> None:
    print(f"\n$ {command}", flush=True)


if __name__ == "__main__":
    main()
