"""Errors of the operator, a branch of the one tree of `snaploom.errors`."""

from snaploom.errors import SnaploomError


class OperatorError(SnaploomError, reason="OperatorFailed"):
    """Root of the operator's branch."""


class SettingsInvalid(OperatorError):
    """The operator's own settings are wrong; it does not start."""


class ClusterError(OperatorError, reason="ClusterFailed"):
    """The API server answered with a failure, or not at all."""


class ObjectMissing(ClusterError):
    """There is no such object."""


class ObjectExists(ClusterError):
    """There is an object of this name already."""


class ObjectChanged(ClusterError):
    """The object was changed or recreated since it was read."""


class ObjectRefused(ClusterError):
    """The API server refused an object: schema, admission webhook or quota."""


class NamespaceTerminating(ClusterError):
    """The namespace is being deleted; nothing can be created in it."""


class NotAllowed(ClusterError):
    """The operator's account lacks a right."""


class ResourceUnknown(ClusterError):
    """The cluster has no such kind; its CustomResourceDefinition is missing."""


class WatchExpired(ClusterError):
    """The API server no longer remembers the changes since the version asked for."""


class TooManyRequests(ClusterError):
    """The API server limits the request rate; `after` are the seconds to wait."""

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(message)
        self.after = after


class ApiUnavailable(ClusterError):
    """The API server does not answer, or answers that it cannot."""


class ReviewUnreadable(OperatorError):
    """The request is not an AdmissionReview of one object; API servers never send one."""


class TooManyReviews(OperatorError):
    """A namespace reached its limit of concurrent reviews, which protects other namespaces."""


class TextNotJudged(OperatorError):
    """A text was not analysed: no process could be started, or the operator is stopping."""


class NotAuthenticated(OperatorError):
    """A request for a page has no token, or one that the API server does not accept."""


class NameTaken(OperatorError):
    """An object of the run's name belongs to another run or another owner."""


class BundleTooLarge(OperatorError):
    """The declarations of one run do not fit into a ConfigMap."""


class SecretInBundle(OperatorError, reason="Invalid"):
    """A spec has a plaintext password; secrets are never written into a ConfigMap (rule R16)."""


class SparkSettingsRefused(OperatorError, reason="Invalid"):
    """Spark settings that reach beyond the run's own pods, or that have a field of their own."""


def in_one_line(error: ClusterError | TimeoutError) -> str:
    """The failure of a request, for a line of the log."""
    return error.message if isinstance(error, ClusterError) else "no answer in time"
