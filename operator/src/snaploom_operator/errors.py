"""Errors of the operator, a branch of the one tree of `snaploom.errors`.

```
OperatorError
├── SettingsInvalid           the operator's own settings file is wrong
├── ClusterError              the API server answered with a failure, or not at all
│   ├── ObjectMissing         404
│   ├── ObjectExists          409 to a create
│   ├── ObjectChanged         409 to a write of an outdated version
│   ├── ObjectRefused         400, 413, 422, an admission webhook or a quota
│   ├── NamespaceTerminating  the namespace is being deleted
│   ├── NotAllowed            401, 403: rights are missing
│   ├── ResourceUnknown       the cluster has no such kind: a CRD is missing
│   ├── WatchExpired          410: the version is too old; list again
│   ├── TooManyRequests       429, with the seconds to wait
│   └── ApiUnavailable        5xx, a time-out, a broken connection
├── ReviewUnreadable          the request is not an AdmissionReview
├── TooManyReviews            the limit of concurrent reviews of a namespace
├── TextNotJudged              no process could analyse a text
├── NotAuthenticated          a request for a page has no valid token
├── NameTaken                 an object of the run's name belongs to another run or owner
├── BundleTooLarge            the declarations do not fit into one ConfigMap
├── SecretInBundle            a password stands in a spec (rule R16)
└── SparkSettingsRefused      settings of the Spark application that leave its sandbox
```
"""

from __future__ import annotations

from snaploom.errors import SnaploomError


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
