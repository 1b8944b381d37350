"""Answers the body of an AdmissionReview: fast path, related resources, review."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
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
from snaploom_operator.admission.review import Submission, read_submission, review, review_deletion
from snaploom_operator.admission.reviewcontext import review_context, users_of
from snaploom_operator.admission.sharedthreads import SharedThreads
from snaploom_operator.admission.throttle import RefusalThrottle
from snaploom_operator.errors import TooManyReviews
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.operatorsettings import AdmissionSettings
from snaploom_operator.store.store import Store
from snaploom_operator.textverdicts import RecordingJudge, TextVerdicts

MOST_OF_A_NAMESPACE = 16
"""Concurrent reviews of one namespace: a quarter of all (`webhookserver.MOST_AT_ONCE`)."""
THREADS_OF_A_NAMESPACE = 1
"""Threads of one namespace: because of Python's lock a second one would not make that namespace
faster, and would slow down all others."""
MOST_WAITING = 16
"""Throttled reviews of all namespaces: a quarter of `webhookserver.MOST_AT_ONCE`, so that they do
not take the slots of others. Further ones are not throttled."""
SMALL_BODY = 16 * 1024
"""Bytes of a review that is parsed faster than a thread starts."""


class Outcome(StrEnum):
    """The outcome of a request, for a metric."""

    PASSED = "passed"
    """Allowed without a review."""
    ALLOWED = "allowed"
    """Allowed without warnings."""
    WARNED = "warned"
    DENIED = "denied"
    UNREADABLE = "unreadable"
    """Not an AdmissionReview."""
    BUSY = "busy"
    """Too many concurrent reviews."""
    LATE = "late"
    """Past the deadline."""
    FAILED = "failed"
    """Snaploom's own code failed."""


@dataclass(frozen=True)
class Judgement:
    """The answer to one request."""

    request: AdmissionRequest
    answer: Answer
    outcome: Outcome

    @property
    def document(self) -> JsonObject:
        """The AdmissionReview of the response."""
        return answer_document(self.request, self.answer)


Dispatch = Callable[[AdmissionRequest, Callable[[], Awaitable[Judgement]]], Awaitable[Judgement]]
"""Begins the judgement of a request, and returns it."""


async def directly(
    request: AdmissionRequest, judge: Callable[[], Awaitable[Judgement]]
) -> Judgement:
    """Judge at once, without kopf."""
    return await judge()


class Judge:
    """Answers reviews, from resources that are read in the caller's event loop only."""

    def __init__(
        self,
        known: Store,
        settings: AdmissionSettings,
        threads: Executor,
        verdicts: TextVerdicts,
        *,
        allow_jdbc_url: bool = False,
        allow: Allowances = NO_ALLOWANCES,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
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
        self.throttle = RefusalThrottle()
        """Recent denials by namespace."""
        self._waiting = 0
        self._sleep = sleep
        self._verdicts = verdicts
        self._under_way: Counter[str] = Counter()

    def under_way(self, namespace: str) -> int:
        """Reviews of a namespace in progress."""
        return self._under_way[namespace]

    async def judge(self, body: bytes, dispatch: Dispatch = directly) -> Judgement:
        """Answer a review.

        Args:
            body: the AdmissionReview.
            dispatch: begins the judgement of a request that must be judged.

        Raises:
            ReviewUnreadable: the body is not an AdmissionReview.
            TooManyReviews: its namespace has too many reviews in progress.
            TextNotJudged: the verdict about a text is missing.
        """
        is_small = len(body) <= SMALL_BODY
        request = (
            parse_review(body)
            if is_small
            else await self._threads.run("", partial(parse_review, body))
        )
        if passes_unread(request, self._passed_users):
            return Judgement(request, PASSED, Outcome.PASSED)
        return await dispatch(request, partial(self._judged, request, is_small))

    async def _judged(self, request: AdmissionRequest, is_small: bool) -> Judgement:
        if request.operation is Operation.DELETE:
            ref = Ref(request.kind.kind, request.namespace, request.name)
            return _judged(request, review_deletion(request, users_of(ref, self._known)))
        with self._slot(request.namespace):
            await self._wait(request.namespace)
            answer = await self._answered(request, is_small)
        if not answer.is_allowed:
            self.throttle.note(request.namespace)
        return _judged(request, answer)

    async def _wait(self, namespace: str) -> None:
        """Delay the review of a namespace with many denials, while few reviews are delayed."""
        seconds = self.throttle.wait(namespace)
        if not seconds or self._waiting >= MOST_WAITING:
            return
        self._waiting += 1
        try:
            await self._sleep(seconds)
        finally:
            self._waiting -= 1

    async def _answered(self, request: AdmissionRequest, is_small: bool) -> Answer:
        if is_small:
            submission = read_submission(request)
        else:
            reading = partial(read_submission, request)
            submission = await self._threads.run(request.namespace, reading)
        if not isinstance(submission, Submission):
            return submission
        context = review_context(submission.resource, self._known)
        judge_text = RecordingJudge(self._verdicts)
        work = partial(self._review, submission, context, judge_text=judge_text)
        answer = await self._threads.run(request.namespace, work)
        while judge_text.missing:  # reviewed again until all verdicts are known
            await judge_text.fetch_missing(request.namespace)
            answer = await self._threads.run(request.namespace, work)
        return answer

    @contextmanager
    def _slot(self, namespace: str) -> Iterator[None]:
        if self._under_way[namespace] >= MOST_OF_A_NAMESPACE:
            raise TooManyReviews(
                f"too many reviews of namespace {namespace!r} at once",
                found=f"{self._under_way[namespace]} under way",
                expected=f"at most {MOST_OF_A_NAMESPACE} at a time",
                hint="send the declarations one after the other, as clients that apply folders do",
            )
        self._under_way[namespace] += 1
        try:
            yield
        finally:
            self._under_way[namespace] -= 1
            if not self._under_way[namespace]:
                del self._under_way[namespace]


def _judged(request: AdmissionRequest, answer: Answer) -> Judgement:
    if not answer.is_allowed:
        return Judgement(request, answer, Outcome.DENIED)
    return Judgement(request, answer, Outcome.WARNED if answer.warnings else Outcome.ALLOWED)
