"""Errors of the operator, a branch of the one tree of `snaploom.errors`."""

from __future__ import annotations

from snaploom.errors import SnaploomError
from snaploom.models.remedies import Remedy


class OperatorError(SnaploomError):
    """Root of the operator's branch."""

    reason = "OperatorFailed"


class SettingsInvalid(OperatorError):
    """The operator's own settings are wrong; it does not start."""

    reason = "SettingsInvalid"
    exit_code = 2


class ClusterError(OperatorError):
    """The API server answered with a failure, or not at all."""

    reason = "ClusterFailed"
    retryable = True


class ObjectMissing(ClusterError):
    """There is no such object."""

    reason = "ObjectMissing"


class ObjectExists(ClusterError):
    """There is an object of this name already."""

    reason = "ObjectExists"


class ObjectChanged(ClusterError):
    """The object was changed or recreated since it was read."""

    reason = "ObjectChanged"


class ObjectRefused(ClusterError):
    """The API server refused an object: schema, admission webhook or quota."""

    reason = "ObjectRefused"


class NamespaceTerminating(ClusterError):
    """The namespace is being deleted; nothing can be created in it."""

    reason = "NamespaceTerminating"
    retryable = False


class NotAllowed(ClusterError):
    """The operator's account lacks a right."""

    reason = "NotAllowed"


class ResourceUnknown(ClusterError):
    """The cluster has no such kind; its CustomResourceDefinition is missing."""

    reason = "ResourceUnknown"


class WatchExpired(ClusterError):
    """The API server no longer remembers the changes since the version asked for."""

    reason = "WatchExpired"


class TooManyRequests(ClusterError):
    """The API server limits the request rate.

    Args:
        message: its message.
        after: seconds to wait.
    """

    reason = "TooManyRequests"

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(
            message, hint="wait, then send it again; if it stays, lower operator.workers"
        )
        self.after = after


class ApiUnavailable(ClusterError):
    """The API server does not answer, or answers that it cannot."""

    reason = "ApiUnavailable"


class ReviewUnreadable(OperatorError):
    """The request is not an AdmissionReview of one object; API servers never send one."""

    reason = "ReviewUnreadable"


class TooManyReviews(OperatorError):
    """A namespace reached its limit of concurrent reviews, which protects other namespaces."""

    reason = "TooManyReviews"


class TextNotJudged(OperatorError):
    """A text was not analysed: no process could be started, or the operator is stopping."""

    reason = "TextNotJudged"
    retryable = True


class NotAuthenticated(OperatorError):
    """A request for a page has no token, or one that the API server does not accept."""

    reason = "NotAuthenticated"


class NameTaken(OperatorError):
    """An object of the run's name belongs to another run or another owner."""

    reason = "NameTaken"


class BundleTooLarge(OperatorError):
    """The declarations of one run do not fit into a ConfigMap."""

    reason = "BundleTooLarge"


class SecretInBundle(OperatorError):
    """A spec has a plaintext password; secrets are never written into a ConfigMap (rule R16)."""

    reason = "Invalid"


class SparkSettingsRefused(OperatorError):
    """Spark settings that reach beyond the run's own pods, or that have a field of their own."""

    reason = "Invalid"


def in_one_line(error: ClusterError | TimeoutError) -> str:
    """The failure of a request, for a line of the log."""
    return error.message if isinstance(error, ClusterError) else "no answer in time"


_AGAIN = "Nothing: it is retried, at growing intervals up to five minutes."

CLUSTER = {
    "OperatorFailed": Remedy(
        "The operator or one of its commands cannot continue.",
        "Look up the reason of the case on this page; this one stands for all of them.",
    ),
    "SettingsInvalid": Remedy(
        "The settings file has a key or a value that this version does not know.",
        "Remove it from the ConfigMap of the release; the chart writes only keys of its own "
        "version, so that different versions of image and chart are the usual cause.",
        see="operating/upgrade.md",
    ),
    "ClusterFailed": Remedy("The API server answered with a failure without a name.", _AGAIN),
    "ObjectMissing": Remedy("An object was deleted between two requests.", _AGAIN),
    "ObjectExists": Remedy("An object already exists.", _AGAIN),
    "ObjectChanged": Remedy("Another client wrote the object at the same time.", _AGAIN),
    "ObjectRefused": Remedy(
        "A quota is used up, a policy engine or another webhook refuses the object, or the CRDs "
        "are of another version than the operator.",
        "The message has the reason of the refusal. Raise the quota, allow in the policy what "
        "Snaploom creates, or upgrade the CRDs. It is retried automatically.",
        see="operating/multi-tenancy.md",
    ),
    "NamespaceTerminating": Remedy(
        "The namespace is being deleted.", "Nothing: its resources are deleted with it."
    ),
    "NotAllowed": Remedy(
        "A role of the release was changed or not installed, or `rbac.create` is false and the "
        "roles of your own lack a rule.",
        "The message names verb and resource. `helm test` shows what is missing, and "
        "`helm upgrade` restores it.",
        see="operating/permissions.md",
    ),
    "ResourceUnknown": Remedy(
        "CRDs of Snaploom or of the Spark operator are not installed.",
        "Install them: `crds.enabled` of the chart, or `snaploom crds`.",
        see="how-to/install.md",
    ),
    "WatchExpired": Remedy("The resourceVersion is too old for the API server.", _AGAIN),
    "NotAuthenticated": Remedy(
        "Somebody asks for a page of a cluster without a token, or with one that has ended; or the "
        "proxy before the pages passes its own.",
        "Let the proxy pass the user's token on, as `Authorization: Bearer TOKEN`.",
        see="how-to/look-at-a-page.md",
    ),
    "TooManyRequests": Remedy(
        "The API server is overloaded, or its priority and fairness limits the operator.",
        "It waits as long as the API server asks. If this continues, lower `operator.workers`.",
    ),
    "ApiUnavailable": Remedy(
        "The API server or the network to it is down, or a NetworkPolicy blocks the operator.",
        "Runs continue, and nothing is lost. If it persists, check the network.",
        see="operating/network.md",
    ),
    "TooManyReviews": Remedy(
        "A client sends more declarations of one namespace at a time than the webhook reviews for "
        "one namespace; others are not delayed.",
        "Send them one after the other, as clients that apply folders do.",
        see="how-to/admission.md",
    ),
    "TextNotJudged": Remedy(
        "The operator cannot start the processes that analyse texts: its pod has too little memory "
        "or a low limit of processes. Or it is stopping.",
        "It is retried. If it persists, raise `operator.resources.limits.memory`.",
        see="operating/troubleshooting.md",
    ),
    "ReviewUnreadable": Remedy(
        "A client other than the API server called the webhook, or an object is larger than any "
        "API server accepts.",
        "Nothing; a NetworkPolicy can restrict access to the webhook.",
        see="operating/network.md",
    ),
}
"""By reason; those that conditions have too are in `conditions`."""
