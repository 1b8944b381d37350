"""A namespace of a real cluster with one small output, to be broken and repaired."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from support.cluster.clusterkubectl import Kubectl, KubectlFailed
from support.cluster.wholecluster import NotAsExpected, OwnCluster, answers
from support.declared.declarations import Raw
from support.declared.shop import (
    CUSTOMERS,
    FIRST_DAY,
    ORDERS,
    SECOND_DAY,
    day_source,
    same_key,
    wide,
    write_rows,
)
from support.documentation.examples import published_files

CLAIM = "shop"
PLACE = Path("/tmp/snaploom/shop")
"""Where data is in pods."""
OUTPUT = "outputdataset/wide"
PATIENCE = 300.0
"""Seconds in which anything happens; a run takes some forty."""
RUN: Raw = {
    # The driver works without executors, and what fails is retried soon.
    "retry": {"limit": 5, "backoffSeconds": 5, "maxBackoffSeconds": 5},
    "spark": {
        "executor": {"instances": 0},
        "podTemplate": {
            "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
            "volumeMounts": [{"name": CLAIM, "mountPath": str(PLACE)}],
        },
    },
}


@dataclass
class ChaosNamespace:
    """The namespace.

    Args:
        own: the cluster.
        namespace: its name.
        folder: the volume of its claim, as a folder of this machine.
    """

    own: OwnCluster
    namespace: str
    folder: Path
    messages: list[str] = field(default_factory=list)
    """Messages of the broken resource, for people."""

    @property
    def cluster_wide(self) -> Kubectl:
        return self.own.whole.cluster.kubectl

    def kubectl(self, *arguments: str) -> str:
        return self.cluster_wide("--namespace", self.namespace, *arguments)

    def apply(self, *objects: Raw) -> None:
        self.cluster_wide.apply(*objects, namespace=self.namespace)

    def prepare(self) -> None:
        """Make the claim, and a day of both sources."""
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        self.own.whole.offer_volume(self.namespace, CLAIM)
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM}}
        self.apply(kind | {"spec": claim})
        self.add_day(FIRST_DAY)

    def add_day(self, day: str) -> None:
        write_rows(self.folder / "orders" / f"{day}.parquet", ORDERS)
        write_rows(self.folder / "customers" / f"{day}.parquet", CUSTOMERS)

    def declare(self, **run: Any) -> None:
        """Apply all declarations; `run` is put over the settings of the output's runs."""
        self.apply(*self.sources(), self.output(**run))

    def sources(self) -> list[Raw]:
        """What the output is woven of."""
        return [
            day_source(PLACE, "orders"),
            day_source(PLACE, "customers"),
            same_key("customer-id", "customer_id", "orders", "customers"),
        ]

    def output(self, **run: Any) -> Raw:
        declared = wide(PLACE, "customers")
        return declared | {"spec": declared["spec"] | {"run": RUN | run}}

    def run_again(self) -> None:
        """Ask for a run, with another day to publish."""
        self.add_day(SECOND_DAY)
        self.ask_for_run()

    def ask_for_run(self) -> None:
        token = f"snaploom.io/run={time.time_ns()}"
        self.kubectl("annotate", OUTPUT, token, "--overwrite")

    # What is seen

    def get(self, resource: str = OUTPUT) -> Raw:
        kind, _, name = resource.partition("/")
        return self.cluster_wide.get(kind, name, self.namespace)

    def status(self, resource: str = OUTPUT) -> Raw:
        found: Raw = self.get(resource).get("status", {})
        return found

    def condition(self, type_: str = "Ready", resource: str = OUTPUT) -> Raw:
        """A condition; empty where there is none."""
        listed = self.status(resource).get("conditions", [])
        return next((each for each in listed if each["type"] == type_), {})

    def applications(self) -> list[Raw]:
        return self.cluster_wide.list("sparkapplications", self.namespace)

    def pods(self, role: str) -> list[Raw]:
        """Pods of drivers or executors that run."""
        selector = f"--selector=spark-role={role}"
        found = json.loads(self.kubectl("get", "pods", selector, "--output", "json"))["items"]
        return [each for each in found if each["status"].get("phase") == "Running"]

    def events(self, reason: str) -> list[str]:
        listed = self.cluster_wide.list("events.events.k8s.io", self.namespace)
        return [each["note"] for each in listed if each["reason"] == reason]

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until something is so.

        Raises:
            NotAsExpected: it does not come in time.
        """
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except KubectlFailed:  # what is broken may be the API server
                pass
            time.sleep(0.3)
        raise NotAsExpected(f"{what} did not come:\n{self.everything()}")

    def until_message(self, *texts: str, type_: str = "Ready", resource: str = OUTPUT) -> None:
        """Wait until the message of a condition has these texts, and note it."""

        def is_shown() -> bool:
            message = self.condition(type_, resource).get("message", "")
            return all(text in message for text in texts)

        self.until(f"a message with {texts} in {type_}", is_shown)
        self.note(type_, resource)

    def note(self, type_: str = "Ready", resource: str = OUTPUT) -> str:
        """Keep for people the message of a condition; returns it."""
        found = self.condition(type_, resource)
        line = f"{resource} {type_}={found['status']} {found['reason']}: {found['message']}"
        self.messages.append(line)
        message: str = found["message"]
        return message

    def until_running(self, role: str = "driver") -> str:
        """Wait until a pod of a role runs; its name."""
        self.until(f"a {role} that runs", lambda: bool(self.pods(role)))
        name: str = self.pods(role)[0]["metadata"]["name"]
        return name

    def until_published(self, *days: str) -> None:
        """Wait until the output is Ready with these days, and look that all is whole.

        Each day is published once, with the rows that it must have.
        """
        times = [f"{day}T00:00:00Z" for day in days]

        def is_published() -> bool:
            status = self.status()
            found = sorted(each["time"] for each in status.get("snapshots", []))
            is_ready = self.condition().get("status") == "True"
            return found == times and is_ready and "currentRun" not in status

        self.until(f"the output with {times}", is_published)
        self.check_rows(self.folder / "wide", times)

    def check_rows(self, folder: Path, times: list[str]) -> None:
        """Each snapshot has the rows of its day, and they are there once."""
        published = published_files(folder)
        assert list(published) == times
        for files in published.values():
            query = (
                f"SELECT data.order_id, customers.data.name FROM read_parquet({files}) ORDER BY 1"
            )
            rows = duckdb.sql(query).fetchall()
            assert rows == [(1, "Ada"), (2, "Grace"), (3, None)]

    def kill(self, pod: str) -> None:
        self.kubectl("delete", "pod", pod, "--grace-period=0", "--force")

    def everything(self) -> str:
        """All that helps to find out why something is not as expected."""
        system = ("--namespace", self.own.whole.release.namespace)
        asked: tuple[tuple[str, ...], ...] = (
            ("get", OUTPUT, "--output", "yaml"),
            ("get", "pods", "--output", "wide"),
            ("get", "sparkapplications", "--output", "yaml"),
            ("get", "events", "--sort-by=.lastTimestamp"),
            ("logs", "--selector=spark-role=driver", "--prefix", "--tail=40"),
            (*system, "get", "pods", "--output", "wide"),
            (*system, "logs", "deployment/snaploom-operator", "--tail=40"),
        )
        return answers(self.kubectl, asked)
