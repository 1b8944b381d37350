"""From the body of a review to its answer: fast passes, what is known, the judgement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom_operator.admission.answers import PASSED, Answer, answer_document
from snaploom_operator.admission.request import (
    AdmissionRequest,
    Operation,
    parse_review,
    passes_unread,
)
from snaploom_operator.admission.review import (
    Submission,
    read_submission,
    review,
    review_deletion,
)
from snaploom_operator.admission.sharedthreads import SharedThreads
from snaploom_operator.admission.surroundings import (
    Known,
    Surroundings,
    surroundings_of,
    users_of,
)
from snaploom_operator.errors import TooManyReviews
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.settings import AdmissionSettings
from snaploom_operator.sqlverdicts import Asked, SqlVerdicts

MOST_OF_A_NAMESPACE = 16
"""Reviews of one namespace under way: a quarter of all (`server.MOST_AT_ONCE`)."""
THREADS_OF_A_NAMESPACE = 1
"""Threads that judge for one namespace at a time: Python runs one of them at any moment, so that a
second one would make that namespace no faster, and all others slower."""
SMALL_BODY = 16 * 1024
"""Bytes of a review that is read in less time than a thread takes to begin."""


class Outcome(StrEnum):
    """What became of a request, for a metric."""

    PASSED = "passed"
    """It was let through without a look."""
    ALLOWED = "allowed"
    """It was let through without a word."""
    WARNED = "warned"
    """It was let through with warnings."""
    DENIED = "denied"
    """It was refused."""
    UNREADABLE = "unreadable"
    """It was no review."""
    BUSY = "busy"
    """There were too many at once."""
    LATE = "late"
    """It took longer than the API server waits."""
    FAILED = "failed"
    """Our own code failed."""


@dataclass(frozen=True)
class Judgement:
    """The answer to one request."""

    request: AdmissionRequest
    answer: Answer
    outcome: Outcome

    @property
    def document(self) -> JsonObject:
        """The AdmissionReview that is sent back."""
        return answer_document(self.request, self.answer)


class Judge:
    """Answers reviews.

    Args:
        known: what is known of the cluster; read in the caller's loop only.
        settings: how strict to be.
        threads: where everything goes on that takes time.
        verdicts: has SQL judged, in no thread.
        allow_jdbc_url: whether the operator's settings allow whole JDBC URLs.
        allow: what declarations may use beyond the built-in lists.
    """

    def __init__(
        self,
        known: Known,
        settings: AdmissionSettings,
        threads: Executor,
        verdicts: SqlVerdicts,
        *,
        allow_jdbc_url: bool = False,
        allow: Allowances = NO_ALLOWANCES,
    ) -> None:
        self._known = known
        self._passed_users = frozenset(settings.passed_users)
        self._review = partial(
            review,
            protect=settings.protect_dependants,
            allow_jdbc_url=allow_jdbc_url,
            allow=allow,
        )
        self._threads = SharedThreads(threads, THREADS_OF_A_NAMESPACE)
        self._verdicts = verdicts
        self._under_way: Counter[str] = Counter()

    def under_way(self, namespace: str) -> int:
        """Reviews of a namespace under way."""
        return self._under_way[namespace]

    async def judge(self, body: bytes) -> Judgement:
        """The answer to a review.

        Raises:
            ReviewUnreadable: the body is none.
            TooManyReviews: its namespace has too many under way.
        """
        if len(body) <= SMALL_BODY:
            request, submission = self._read(body)
        else:
            request, submission = await self._threads.run("", partial(self._read, body))
        if isinstance(submission, Submission):
            with self._turn(request.namespace):
                around = surroundings_of(submission.resource, self._known)
                return _judged(request, await self._reviewed(submission, around, request.namespace))
        if submission is None:
            ref = Ref(request.kind.kind, request.namespace, request.name)
            return _judged(request, review_deletion(request, users_of(ref, self._known)))
        if submission is PASSED:
            return Judgement(request, PASSED, Outcome.PASSED)
        return _judged(request, submission)

    @contextmanager
    def _turn(self, namespace: str) -> Iterator[None]:
        """One review of a namespace under way."""
        if self._under_way[namespace] >= MOST_OF_A_NAMESPACE:
            raise TooManyReviews(f"too many reviews of namespace {namespace!r} at once")
        self._under_way[namespace] += 1
        try:
            yield
        finally:
            self._under_way[namespace] -= 1
            if not self._under_way[namespace]:
                del self._under_way[namespace]

    async def _reviewed(
        self, submission: Submission, around: Surroundings, namespace: str
    ) -> Answer:
        """The answer once all SQL in sight is judged; the namespace waits for its own texts."""
        asked = Asked(self._verdicts)
        work = partial(self._review, submission, around, judge_sql=asked)
        answer = await self._threads.run(namespace, work)
        while asked.missing:
            await asked.learn(namespace)
            answer = await self._threads.run(namespace, work)
        return answer

    def _read(self, body: bytes) -> tuple[AdmissionRequest, Submission | Answer | None]:
        """The request, with its object, or the answer where that is settled; None to delete."""
        request = parse_review(body)
        if passes_unread(request, self._passed_users):
            return request, PASSED
        if request.operation is Operation.DELETE:
            return request, None
        return request, read_submission(request)


def _judged(request: AdmissionRequest, answer: Answer) -> Judgement:
    if not answer.is_allowed:
        return Judgement(request, answer, Outcome.DENIED)
    return Judgement(request, answer, Outcome.WARNED if answer.warnings else Outcome.ALLOWED)
