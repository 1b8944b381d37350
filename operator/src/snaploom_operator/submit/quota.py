"""Queues of the cluster's scheduler: what puts a run into one, and how it is seen to wait there.

A run's objects are marked as each scheduler asks for; what is not marked starts outside its quota.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from snaploom.models.run import Submitter
from snaploom_operator import objects
from snaploom_operator.settings import QueueScheduler

_KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of Kueue: the LocalQueue of an object, in its namespace."""
_KUEUE_MANAGED = "kueue.x-k8s.io/managed"
_KUEUE_PARENT = "kueue.x-k8s.io/pod-suspending-parent"
"""Label and annotation without which Kueue leaves out the pods that a pod of its own creates."""
_YUNIKORN_QUEUE = "queue"
"""Label that every version of YuniKorn knows. By Spark's own label all pods of a run are one
application to it."""
_VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
_SIGNS = {
    QueueScheduler.KUEUE_PODS: objects.GATED,
    QueueScheduler.YUNIKORN: "SchedulingSkipped",
}
"""Reasons of an unscheduled pod that mean that quota is missing, and not room on a node. Volcano
has one reason for both."""


@dataclass(frozen=True)
class PodMarks:
    """Marks that put a pod into a queue."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = ""
    """Name of the scheduler that takes the place of the cluster's default; empty for that one."""


def pod_marks(scheduler: QueueScheduler | None, queue: str | None, *, is_driver: bool) -> PodMarks:
    """The marks of a pod of a run; none without a queue, and where whole applications wait."""
    if queue is None:
        return PodMarks()
    match scheduler:
        case QueueScheduler.KUEUE_PODS:
            if is_driver:
                return PodMarks({_KUEUE_QUEUE: queue})
            labels = {_KUEUE_QUEUE: queue, _KUEUE_MANAGED: "true"}
            return PodMarks(labels, {_KUEUE_PARENT: "spark-driver"})
        case QueueScheduler.YUNIKORN:
            return PodMarks({_YUNIKORN_QUEUE: queue}, scheduler="yunikorn")
        case QueueScheduler.VOLCANO:
            return PodMarks({}, {_VOLCANO_QUEUE: queue}, "volcano")
        case _:
            return PodMarks()


def queued(
    made: objects.JsonObject, scheduler: QueueScheduler | None, queue: str | None
) -> objects.JsonObject:
    """The application of a run, suspended where its queue is to start it as a whole.

    Kueue counts the cores of an application only where they are requested.
    """
    if queue is None or scheduler is not QueueScheduler.KUEUE:
        return made
    metadata, spec = objects.metadata_of(made), objects.mapping_in(made, "spec")
    pods = {role: objects.mapping_in(spec, role) for role in ("driver", "executor")}
    requests = {role: {**pod, "coreRequest": str(pod["cores"])} for role, pod in pods.items()}
    return {
        **made,
        "metadata": {**metadata, "labels": {**objects.labels_of(made), _KUEUE_QUEUE: queue}},
        "spec": {**spec, **requests, "suspend": True},
    }


def waits_for_quota(
    scheduler: QueueScheduler, application: objects.Application, pod: objects.DriverPod | None
) -> bool:
    """Return whether a run that was put into a queue has no quota yet, or has it no more."""
    if scheduler is QueueScheduler.KUEUE:
        return application.is_suspended
    if pod is None or pod.phase != "Pending":
        return False
    if scheduler is QueueScheduler.VOLCANO:
        return bool(pod.unscheduled)
    return pod.unscheduled == _SIGNS[scheduler]


def why_no_queue(scheduler: QueueScheduler | None, queue: str | None, submitter: Submitter) -> str:
    """Reason why a run cannot be put into its queue, and what to do; empty if it can.

    A developer's machine has no queues: the same declarations run there without.
    """
    if queue is None or submitter is Submitter.LOCAL:
        return ""
    if scheduler is None:
        return (
            f"run.queue names the queue {queue}, and no scheduler with queues is set for this "
            "operator; set operator.queueScheduler of the chart, or remove run.queue"
        )
    if scheduler is QueueScheduler.KUEUE and submitter is not Submitter.SPARK_OPERATOR:
        return (
            f"run.queue names the queue {queue}, and Kueue admits whole applications of the "
            f"submitter {Submitter.SPARK_OPERATOR} only (found: {submitter}); set "
            f"operator.queueScheduler of the chart to {QueueScheduler.KUEUE_PODS}, or change "
            "run.submitter"
        )
    return ""
