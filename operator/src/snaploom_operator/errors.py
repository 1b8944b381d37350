"""Errors of the operator, a branch of the one tree of `snaploom.errors`.

```
OperatorError
├── SettingsInvalid           the operator's own settings file is wrong
├── ClusterError              the API server answered with a failure, or not at all
│   ├── ObjectMissing         404
│   ├── ObjectExists          409 to a create
│   ├── ObjectChanged         409 to a write of something that changed meanwhile
│   ├── ObjectRefused         400, 413, 422, or an admission webhook or a quota said no
│   ├── NamespaceTerminating  nothing can be created there any more
│   ├── NotAllowed            401, 403: rights are missing
│   ├── ResourceUnknown       the cluster has no such kind: a CRD is missing
│   ├── WatchExpired          410: changes since then are forgotten; list again
│   ├── TooManyRequests       429; says how long to wait
│   └── ApiUnavailable        5xx, a time-out, a broken connection
├── ReviewUnreadable          what came to the webhook is no review of one object
├── TooManyReviews            one namespace has more reviews under way than it may
├── SqlNotJudged              no process could judge a text of SQL
├── NameTaken                 an object of the run's name belongs to another run or owner
├── BundleTooLarge            the declarations do not fit into one ConfigMap
├── SecretInBundle            a password stands in a spec (ruling D41)
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
    """Somebody changed the object meanwhile, or it is another one by now."""

    reason = "ObjectChanged"


class ObjectRefused(ClusterError):
    """The API server refused an object: its schema, an admission webhook or a quota said no."""

    reason = "ObjectRefused"


class NamespaceTerminating(ClusterError):
    """The namespace is being deleted: nothing can be created in it any more."""

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
    """The API server asks for patience.

    Args:
        message: what it said.
        after: seconds to wait.
    """

    reason = "TooManyRequests"

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(message)
        self.after = after


class ApiUnavailable(ClusterError):
    """The API server does not answer, or answers that it cannot."""

    reason = "ApiUnavailable"


class ReviewUnreadable(OperatorError):
    """What came to the webhook is no review of one object; the API server sends none such."""

    reason = "ReviewUnreadable"


class TooManyReviews(OperatorError):
    """One namespace has more reviews under way than it may; the others are not to wait for it."""

    reason = "TooManyReviews"


class SqlNotJudged(OperatorError):
    """A text of SQL was not judged: no process could be started for it, or the operator stops."""

    reason = "SqlNotJudged"
    retryable = True


class NameTaken(OperatorError):
    """An object of the run's name belongs to another run, or to somebody else."""

    reason = "NameTaken"


class BundleTooLarge(OperatorError):
    """The declarations of one run do not fit into a ConfigMap."""

    reason = "BundleTooLarge"


class SecretInBundle(OperatorError):
    """A password stands in a spec; nothing secret is written into a ConfigMap (ruling D41)."""

    reason = "Invalid"


class SparkSettingsRefused(OperatorError):
    """Settings of the Spark application reach beyond its own pods, or have a field of their own."""

    reason = "Invalid"
