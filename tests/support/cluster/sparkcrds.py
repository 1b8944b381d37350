"""The CRDs of the two Spark operators, for judging what we write and for a cluster without them.

That of the Kubeflow Spark operator is its own, from its Go module. Apache's is served by no
package registry: the one here has the fields that we use, in our words.
"""

import time
from functools import cache
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from support.cluster.cluster import built
from support.cluster.clusterkubectl import Kubectl
from support.declared.modelrules import strict

from snaploom.models.run import Submitter

Raw = dict[str, Any]
FILE = "sparkoperator.k8s.io_sparkapplications.yaml"
DEADLINE = 60.0
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


@cache
def spark_operator_crd() -> Raw:
    """The CRD of SparkApplication v1beta2, as its operator ships it."""
    folder = built("sparkoperator").parent / "crds"
    crd: Raw = yaml.load((folder / FILE).read_text(), Loader=yaml.CSafeLoader)
    return crd


@cache
def judge_of(submitter: Submitter) -> Draft202012Validator:
    """Who judges `spec` of an application; keys that the API server would drop are errors."""
    crd = APACHE_CRD if submitter is Submitter.APACHE_SPARK else spark_operator_crd()
    (version,) = (one for one in crd["spec"]["versions"] if one["storage"])
    return Draft202012Validator(strict(version["schema"]["openAPIV3Schema"]["properties"]["spec"]))


def _object(required: tuple[str, ...] = (), **properties: Raw) -> Raw:
    result: Raw = {"type": "object", "properties": properties}
    return result | ({"required": list(required)} if required else {})


def _map(of: Raw) -> Raw:
    return {"type": "object", "additionalProperties": of}


def _one_of(*words: str) -> Raw:
    return {"type": "string", "enum": list(words)}


STATE = _object(
    currentStateSummary=_one_of(
        "Submitted", "ScheduledToRestart", "DriverRequested", "DriverStarted", "DriverReady",
        "InitializedBelowThresholdExecutors", "RunningHealthy", "RunningWithPartialCapacity",
        "RunningWithBelowThresholdExecutors", "DriverStartTimedOut", "DriverReadyTimedOut",
        "ExecutorsStartTimedOut", "Succeeded", "Failed", "SchedulingFailure", "DriverEvicted",
        "ResourceReleased", "TerminatedWithoutReleaseResources",
    ),
    lastTransitionTime=TEXT,
    message=TEXT,
)  # fmt: skip
APACHE_SPEC = _object(
    ("runtimeVersions",),
    runtimeVersions=_object(("sparkVersion",), sparkVersion=TEXT),
    mainClass=TEXT,
    pyFiles=TEXT,
    driverArgs={"type": "array", "items": TEXT},
    sparkConf=_map(TEXT),
    driverSpec=_object(podTemplateSpec=OPEN),
    executorSpec=_object(podTemplateSpec=OPEN),
    applicationTolerations=_object(
        restartConfig=_object(
            restartPolicy=_one_of("Always", "Never", "OnFailure", "OnInfrastructureFailure")
        ),
        resourceRetainPolicy=_one_of("Always", "Never", "OnFailure"),
        applicationTimeoutConfig=_object(
            driverStartTimeoutMillis=NUMBER,
            driverReadyTimeoutMillis=NUMBER,
            executorStartTimeoutMillis=NUMBER,
        ),
    ),
)
APACHE_CRD: Raw = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sparkapplications.spark.apache.org"},
    "spec": {
        "group": "spark.apache.org",
        "names": {
            "kind": "SparkApplication",
            "plural": "sparkapplications",
            "singular": "sparkapplication",
            "listKind": "SparkApplicationList",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": _object(
                        spec=APACHE_SPEC,
                        status=_object(currentState=STATE, stateTransitionHistory=_map(STATE)),
                    )
                },
            }
        ],
    },
}


def install_spark_crds(kubectl: Kubectl) -> None:
    """Let a cluster serve the kinds of both operators, which do not run there."""
    crds = (spark_operator_crd(), APACHE_CRD)
    kubectl.apply(*crds)
    deadline = time.monotonic() + DEADLINE
    for crd in crds:
        while not _is_served(kubectl.get("crd", crd["metadata"]["name"])):
            assert time.monotonic() < deadline, f"{crd['metadata']['name']} is not served"
            time.sleep(0.1)


def _is_served(crd: Raw) -> bool:
    # Right after its creation the conditions are null, which `kubectl wait` stumbles over.
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
