"""Translates OpenSearch's failures: temporary ones, messages, and no secrets."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable
from typing import TypeVar

from opensearchpy.exceptions import (
    ConnectionError as NotConnected,
)
from opensearchpy.exceptions import (
    OpenSearchException,
    SSLError,
    TransportError,
)

from snaploom.endpoints.connections import AnswerTooLong, EndpointRefused
from snaploom.errors import IndexNotPossible, SkippingError
from snaploom.skipping.stores.patience import somebody_waits

ATTEMPTS = 8
"""Tries of one request; with the pauses below they last about half a minute."""

ATTEMPTS_AWAITED = 2
"""The same while somebody waits: one lost connection is no reason to give up."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the next try, doubled each time; a random part keeps writers apart."""

_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""The message of OpenSSL for a server of plain HTTP."""

PASSING = frozenset({429, 502, 503, 504})
"""HTTP statuses that mean "later"."""

MISUNDERSTOOD = (
    LookupError, TypeError, ValueError, AttributeError, StopIteration, RecursionError, MemoryError,
)  # fmt: skip
"""Errors of our code and the library when an answer is JSON of another form, or none."""

T = TypeVar("T")


class IndexStoreFailed(SkippingError):
    """OpenSearch does not answer, or refuses a request."""

    reason = "IndexStoreFailed"
    retryable = True


def is_passing(error: OpenSearchException) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, SSLError) and _is_lasting(_of_tls(error)):
        return False
    if _refusal(error) is not None:
        return False
    return isinstance(error, NotConnected) or (
        isinstance(error, TransportError) and error.status_code in PASSING
    )


def pause_before(attempt: int) -> float:
    """Seconds to wait before a try, from 1 for the second."""
    return min(FIRST_PAUSE * (1 << (attempt - 1)), LONGEST_PAUSE) * random.uniform(0.5, 1.0)


def repeated(request: Callable[[], T], uri: str, doing: str) -> T:
    """Send a request, again while failures are temporary; `doing` is for messages.

    Raises:
        IndexStoreFailed: it was refused, or failed every time.
    """
    attempts = ATTEMPTS_AWAITED if somebody_waits() else ATTEMPTS
    for attempt in range(1, attempts + 1):
        try:
            return request()
        except OpenSearchException as error:
            if attempt == attempts or not is_passing(error):
                raise translated(error, uri, doing) from None
        except MISUNDERSTOOD as error:
            raise IndexStoreFailed(
                f"OpenSearch at {uri} did not {doing}",
                found=f"an answer that cannot be understood ({type(error).__name__})",
                expected="answers of OpenSearch",
                hint="check that this is the server that was meant",
            ) from None
        time.sleep(pause_before(attempt))
    raise IndexStoreFailed(
        f"OpenSearch does not {doing}",
        found="no attempt was made",
        expected="at least one attempt",
        hint="run again",
    )


def not_asked(refused: EndpointRefused) -> IndexNotPossible:
    """Build the error about a server that may not be connected to."""
    return IndexNotPossible(
        f"OpenSearch cannot be asked: {refused.message}",
        found=refused.found,
        expected=refused.expected,
        hint=refused.hint,
    )


def _refusal(error: OpenSearchException) -> EndpointRefused | None:
    cause = error.info if isinstance(error, NotConnected) else None
    return cause if isinstance(cause, EndpointRefused) else None


def translated(error: OpenSearchException, uri: str, doing: str) -> SkippingError:
    """Translate the library's error.

    The library's own is not chained: it holds the request, and with it headers and bodies.
    """
    message = f"OpenSearch at {uri} did not {doing}"
    refused = _refusal(error)
    if isinstance(refused, AnswerTooLong):
        return IndexStoreFailed(
            message,
            found=refused.found,
            expected=refused.expected,
            hint="check that this is the server that was meant",
        )
    if refused is not None:
        return not_asked(refused)
    if isinstance(error, SSLError):
        return _untrusted(message, _of_tls(error))
    if isinstance(error, NotConnected):
        return IndexStoreFailed(
            message,
            found=f"no answer ({type(error).__name__})",
            expected="a server that answers in time",
            hint="check scheme, host and port, and that the server is up",
        )
    if isinstance(error, TransportError):
        is_right = error.status_code in (401, 403)
        return IndexStoreFailed(
            message,
            found=f"{error.status_code} {reason_of(error)}",
            expected="a user that may do this" if is_right else "a request that the server takes",
            hint="check auth, the user and what it may do"
            if is_right
            else "see in the words of the server what it lacks, then run again",
        )
    return IndexStoreFailed(
        message,
        found=type(error).__name__,
        expected="an answer of OpenSearch",
        hint="check that the server is up and of a version that is supported, then run again",
    )


def _untrusted(message: str, problem: ssl.SSLError | None) -> IndexStoreFailed:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return IndexStoreFailed(
            message,
            found=f"its certificate is refused: {problem.verify_message}",
            expected="a valid certificate for this host, signed by an authority that is trusted",
            hint="name the file of your own authority with the option ca_file",
        )
    reason = problem.reason if problem is not None and problem.reason else "no reason given"
    speaks_http = problem is not None and problem.reason in _NO_TLS
    return IndexStoreFailed(
        message,
        found=f"no encrypted connection ({reason})",
        expected="a server that speaks https",
        hint="set scheme=http if it does not" if speaks_http else "check scheme, host and port",
    )


def _of_tls(error: SSLError) -> ssl.SSLError | None:
    inner: object = error.info
    while isinstance(inner, BaseException):
        if isinstance(inner, ssl.SSLError):
            return inner
        inner = next((each for each in inner.args if isinstance(each, BaseException)), None)
    return None


def _is_lasting(problem: ssl.SSLError | None) -> bool:
    return isinstance(problem, ssl.SSLCertVerificationError) or (
        problem is not None and problem.reason in _NO_TLS
    )


def reason_of(error: TransportError) -> str:
    """The message of the server, in one line: type and reason of the first cause."""
    info = error.info
    if not isinstance(info, dict) or not isinstance(info.get("error"), dict):
        return str(error.error)
    cause = info["error"]
    roots = cause.get("root_cause") or [cause]
    return f"{roots[0].get('type', '')}: {roots[0].get('reason', '')}"
