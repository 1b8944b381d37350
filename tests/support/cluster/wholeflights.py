"""The flights example in a whole cluster, by the commands that a person would type."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from obstore import put
from obstore.store import S3Store
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.wholecluster import PATIENCE, NotAsExpected, WholeCluster, answers
from support.documentation.examples import BIN, REPOSITORY, run_command
from support.servers.s3servers import ACCESS_KEY, BUCKET, S3Server

PLACE = "/tmp/snaploom/flights"
"""Where data is in pods, as on a laptop."""
SECRET = "flights-bucket"
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@dataclass(frozen=True)
class Bucket:
    """The example a second time, with everything in a bucket."""

    flights: Flights
    server: S3Server
    folder: Path
    """Where the server keeps the bucket's objects as files."""


def in_bucket(
    documents: Sequence[Raw], server: S3Server, place: str = PLACE, key: str = "flights"
) -> list[Raw]:
    """The declarations with their paths in the bucket, and the Secret with the keys to it.

    Pods have the keys from the Secret, and the rest of what they need as plain variables.

    Args:
        documents: declarations with paths of files.
        server: where the bucket is.
        place: folder in which these are.
        key: of the bucket, which takes the folder's place.
    """
    text = json.dumps([each for each in documents if each["kind"] != "SkippingIndex"])
    moved: list[Raw] = json.loads(text.replace(f"file://{place}/", f"s3://{BUCKET}/{key}/"))
    keys = {"secretRef": {"name": SECRET}}
    plain = [
        {"name": name, "value": value}
        for name, value in server.environment.items()
        if name not in _KEYS
    ]
    for document in moved:
        if document["kind"] == "OutputDataset":
            run = document["spec"].setdefault("run", {})
            template = {"podTemplate": {"env": plain, "envFrom": [keys]}}
            run["spark"] = run.get("spark", {}) | template
    return [secret_of(server), *moved]


def secret_of(server: S3Server) -> Raw:
    """The Secret with the keys to a server's bucket."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}}
    return secret | {"stringData": {name: server.environment[name] for name in _KEYS}}


def upload(server: S3Server, files: Mapping[str, Path]) -> None:
    """Put files into the bucket.

    Args:
        server: where the bucket is.
        files: paths by key.
    """
    store = S3Store(
        BUCKET,
        endpoint=server.endpoint,
        access_key_id=ACCESS_KEY,
        secret_access_key=server.secret,
        region="us-east-1",
        client_options={"allow_http": True},
    )
    for key, path in files.items():
        put(store, key, path.read_bytes())


EXAMPLE = REPOSITORY / "examples" / "flights"
VOLUME = REPOSITORY / "examples" / "cluster" / "flights"
OUTPUT, INDEX = "outputdataset/flights-wide", "skippingindex/flights-wide"
SOURCE_INDEX = "skippingindex/flights-of-the-source"
CONSOLE, READER = "console", "reader"
_TAIL = "--tail=60"
_JOBS = "spark-role in (driver, executor)"

Raw = dict[str, Any]


@dataclass(frozen=True)
class Flights:
    """The example in one namespace."""

    whole: WholeCluster
    namespace: str = "flights"

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        kubectl = self.whole.cluster.kubectl
        return kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    def snaploom(self, *arguments: str) -> str:
        """What a command of ours prints that talks to the cluster."""
        command = [BIN / "snaploom", *arguments, "--namespace", self.namespace]
        environment = os.environ | {"KUBECONFIG": str(self.whole.cluster.kubeconfig)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, resource: str) -> Raw:
        kind, _, name = resource.partition("/")
        return self.whole.cluster.kubectl.get(kind, name, self.namespace)

    def list(self, kind: str) -> list[Raw]:
        return self.whole.cluster.kubectl.list(kind, self.namespace)

    def apply(self, *objects: Raw) -> None:
        self.whole.cluster.kubectl.apply(*objects, namespace=self.namespace)

    def open_console(self) -> None:
        """Make volume and console, and wait until data can be copied."""
        self.whole.offer_volume(self.namespace, "flights")
        claim, console = documents(VOLUME)
        console["spec"]["containers"][0]["image"] = self.whole.first.spark_image
        self.apply(claim, console)
        self.wait(f"pod/{CONSOLE}")

    def sources(self, folder: Path, months: int) -> Path:
        """Write the sources of the first months of the year here; their folder."""
        run_command(f"python '{EXAMPLE}/data.py' --months {months} --to '{folder}'", REPOSITORY)
        return folder / "sources"

    def copy_in(self, folder: Path) -> None:
        """Add the files of a folder to the folder of this name in the volume."""
        # By the name of its parent: into a folder that is there, it would be copied as one more.
        self.kubectl("cp", str(folder), f"{CONSOLE}:{PLACE}", "--no-preserve")

    def copy_out(self, name: str, target: Path) -> Path:
        """Copy a folder of the volume to a new one here."""
        self.kubectl("cp", f"{CONSOLE}:{PLACE}/{name}", str(target))
        return target

    def files(self, name: str) -> list[str]:
        """Paths of the files in a folder of the volume, hidden ones too; empty without it."""
        command = f"cd {PLACE} && if [ -e {name} ]; then find {name} -type f; fi"
        return self.kubectl("exec", CONSOLE, "--", "sh", "-c", command).split()

    def open_reader(self, variables: Raw) -> None:
        """Make a pod like the console, whose container has these `env` and `envFrom`."""
        _, reader = documents(VOLUME)
        reader["metadata"]["name"] = READER
        reader["spec"]["containers"][0] |= {"image": self.whole.newer.spark_image, **variables}
        self.apply(reader)
        self.wait(f"pod/{READER}")

    def python(self, program: Path, *arguments: str) -> str:
        """What a Python program prints in the console."""
        command = ("exec", "--stdin", CONSOLE, "--", "python3", "-", *arguments)
        return self.kubectl(*command, stdin=program.read_text("utf-8"))

    def run_in_reader(self, program: str, *arguments: str) -> None:
        """Run a Python program in the reader, where Python finds nothing of ours."""
        unknown = "import importlib.util as found; assert found.find_spec('snaploom') is None\n"
        isolated = ("python3", "-I", "-S", "-c", unknown + program)
        self.kubectl("exec", READER, "--", *isolated, *arguments)

    def wait(self, resource: str, condition: str = "condition=Ready") -> None:
        """Wait as a person would.

        Raises:
            NotAsExpected: it did not come; with the state of the cluster.
        """
        try:
            self.kubectl("wait", resource, f"--for={condition}", PATIENCE)
        except KubectlFailed as failure:
            raise NotAsExpected(f"{failure.stderr}\n{self.diagnostics()}") from failure

    def await_end_of_run(self, resource: str) -> None:
        """Wait until the run of a resource that is under way, or its last one, has ended.

        Snapshots are in the status before their run has ended.
        """
        status = self.get(resource)["status"]
        run = status.get("currentRun", status["lastRun"])["id"]
        self.wait(resource, f"jsonpath={{.status.lastRun.id}}={run}")

    def patch(self, resource: str, **spec: Any) -> None:
        patch = json.dumps({"spec": spec})
        self.kubectl("patch", resource, "--type=merge", "--patch", patch)

    def diagnostics(self) -> str:
        """All that helps to find out why something is not as expected."""
        system = ("--namespace", self.whole.release.namespace)
        asked: Sequence[tuple[str, ...]] = (
            ("get", "snaploom", "--output", "wide"),
            ("get", "pods", "--output", "wide"),
            ("get", "sparkapplications", "--output", "yaml"),
            ("get", "events", "--sort-by=.lastTimestamp"),
            ("logs", "--selector", _JOBS, "--prefix", _TAIL),
            (*system, "get", "pods", "--output", "wide"),
            (*system, "get", "events", "--sort-by=.lastTimestamp"),
            (*system, "logs", "deployment/snaploom-operator", _TAIL),
        )
        return answers(self.kubectl, asked)


def documents(folder: Path) -> list[Raw]:
    """What the files of a folder declare, in the order of their names."""
    texts = (path.read_text("utf-8") for path in sorted(folder.glob("*.yaml")))
    return [raw for text in texts for raw in yaml.safe_load_all(text) if raw]
