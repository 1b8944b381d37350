"""Answers the body of an AdmissionReview: fast path, related resources, review."""

import asyncio
import hashlib
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from pydantic import JsonValue

from snaploom.loading.documents import read_object
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import Resource
from snaploom.models.findings import Finding, Severity, errors_of
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.policy.verdicts import TextJudge
from snaploom.validate.validator import validate
from snaploom_operator.admission import conflicts
from snaploom_operator.admission.request import (
    PASSED,
    AdmissionRequest,
    Answer,
    Operation,
    Refusal,
    answer_document,
    parse_review,
    passes_unread,
    warning_text,
)
from snaploom_operator.errors import TooManyReviews
from snaploom_operator.gather.gatherer import cluster_findings
from snaploom_operator.objects import JsonObject, Ref, metadata_of, text_in
from snaploom_operator.settings import AdmissionSettings, ProtectDependants
from snaploom_operator.store.entries import parse_resource
from snaploom_operator.store.store import Store
from snaploom_operator.verdicts import RecordingJudge, TextVerdicts

# Shares of namespaces: threads for work that cannot be cancelled, and waits after refusals.

_Result = TypeVar("_Result")


@dataclass
class _Share:
    turns: asyncio.Semaphore
    users: int = 0
    """Tasks that run or wait."""


class SharedThreads:
    """Runs work in threads, of which each name has at most a share."""

    def __init__(self, threads: Executor, share: int) -> None:
        self._threads = threads
        self._share = share
        self._shares: dict[str, _Share] = {}

    async def run(self, name: str, work: Callable[[], _Result]) -> _Result:
        """Run work as soon as the name has a free slot; its result, or its error."""
        share = self._shares.setdefault(name, _Share(asyncio.Semaphore(self._share)))
        share.users += 1
        try:
            await share.turns.acquire()
        except asyncio.CancelledError:
            self._leave(name)
            raise
        loop = asyncio.get_running_loop()
        future = self._threads.submit(work)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._ended, name))
        return await asyncio.wrap_future(future)

    def _ended(self, name: str) -> None:
        self._shares[name].turns.release()
        self._leave(name)

    def _leave(self, name: str) -> None:
        share = self._shares[name]
        share.users -= 1
        if not share.users:
            del self._shares[name]


HALF_LIFE_SECONDS = 10.0
"""Half-life of a denial's weight."""
FREE_REFUSALS = 10.0
"""Denials without a delay, such as a folder of invalid resources."""
SECONDS_A_REFUSAL = 0.05
"""Delay that each further denial adds. Four connections of denied reviews reach some three reviews
a second."""
LONGEST_WAIT_SECONDS = 1.5
"""Less than half of a review's deadline (`webhookserver.REVIEW_SECONDS`), so that it is still
answered."""
MOST_REMEMBERED = 1_000
"""Namespaces in memory; beyond it those with the fewest denials are dropped."""


@dataclass(frozen=True)
class _Count:
    count: float
    at: float


class RefusalThrottle:
    """Recent denials by namespace, with exponential decay; its clock is monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}

    def note(self, namespace: str) -> None:
        """Count a denied review of a namespace."""
        self._counts[namespace] = _Count(self._count(namespace) + 1, self._clock())
        if len(self._counts) > MOST_REMEMBERED:
            most = sorted(self._counts, key=self._count, reverse=True)[: MOST_REMEMBERED // 2]
            self._counts = {each: self._counts[each] for each in most}

    def wait(self, namespace: str) -> float:
        """Seconds of delay of the next review of a namespace."""
        beyond = self._count(namespace) - FREE_REFUSALS
        return min(max(beyond, 0.0) * SECONDS_A_REFUSAL, LONGEST_WAIT_SECONDS)

    def _count(self, namespace: str) -> float:
        refused = self._counts.get(namespace)
        if refused is None:
            return 0.0
        return refused.count * math.pow(0.5, (self._clock() - refused.at) / HALF_LIFE_SECONDS)


NAMES_SHOWN = 5
"""Names of dependants in one sentence."""
LONGEST_NAME, GENERATED = 63, 5
"""Characters of a name that the API server generates, and of what it adds to `generateName`."""
_CONTRADICTIONS = frozenset({"SL155", "SL174", "SL181"})
"""Findings of validation that `contradictions` reports itself."""


@dataclass(frozen=True)
class Submission:
    """A parsed object that is to be created or changed."""

    resource: Resource
    before: Resource | None
    """The stored object; None for a new one, and for an unparsable one."""


def read_submission(request: AdmissionRequest) -> Submission | Answer:
    """Parse the object of a request; a denial if that fails."""
    read = read_object(_declared(request.new or {}, request))
    if read.resource is None:
        return Answer(Refusal(read.findings))
    is_ours = request.old is not None and text_in(request.old, "kind") in KIND_BY_NAME
    before = parse_resource(request.old) if request.old is not None and is_ours else None
    return Submission(read.resource, before if isinstance(before, Resource) else None)


def _declared(sent: JsonObject, request: AdmissionRequest) -> dict[str, JsonValue]:
    """The object without status and managed fields; one without a name yet has one like it."""
    metadata = {key: value for key, value in metadata_of(sent).items() if key != "managedFields"}
    if request.namespace:
        metadata["namespace"] = request.namespace
    beginning = metadata.get("generateName")
    if not metadata.get("name") and isinstance(beginning, str) and beginning:
        # The API server adds five characters; those of the request are nobody's to choose.
        end = hashlib.sha256(request.uid.encode()).hexdigest()[:GENERATED]
        metadata["name"] = beginning[: LONGEST_NAME - GENERATED] + end
    declared = {key: value for key, value in sent.items() if key != "status"}
    return {**declared, "metadata": metadata}


def review(
    submission: Submission,
    context: conflicts.ReviewContext,
    protect: ProtectDependants,
    *,
    judge_text: TextJudge,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> Answer:
    """Review a create or an update, within the allow lists of the operator's settings."""
    resource, identity = submission.resource, submission.resource.identity
    stored = () if submission.before is None else (submission.before,)
    before, after = (
        conflicts.ResourceSet(
            (*context.near, *own), context.broken, allow, judge_text, context.others
        )
        for own in (stored, (resource,))
    )
    findings = after.findings([identity])
    refused = (
        *_by_itself(resource, findings, allow, judge_text),
        *cluster_findings(resource, allow_jdbc_url=allow_jdbc_url, allow=allow),
        *conflicts.contradictions(resource, submission.before, context),
    )
    refused_at = {(finding.code, finding.path) for finding in refused}
    doubtful = [
        finding
        for finding in findings
        if finding.code not in _CONTRADICTIONS and (finding.code, finding.path) not in refused_at
    ]
    if refused:
        return Answer(Refusal(refused), _warnings(doubtful))
    broken = (
        *conflicts.broken_by(before, after, context.dependants),
        *conflicts.newly_stalled(submission.before, before, doubtful, context.dependants),
    )
    if broken and protect is ProtectDependants.DENY:
        refusal = Refusal(broken, _breaking(broken), HTTPStatus.FORBIDDEN, "Forbidden")
        return Answer(refusal, _warnings(doubtful))
    history = (
        () if errors_of(doubtful) else conflicts.restructuring_findings(before, after, [identity])
    )
    return Answer(
        warnings=(
            *_warnings(doubtful),
            *_warnings(history),
            *((_breaking(broken),) if broken else ()),
            *_warnings(broken),
            *_unjudged(context),
        )
    )


def _by_itself(
    resource: Resource, findings: Iterable[Finding], allow: Allowances, judge_text: TextJudge
) -> tuple[Finding, ...]:
    if not errors_of(findings):
        return ()
    own_findings = validate(
        [resource], missing_reference=Severity.WARNING, allow=allow, judge_text=judge_text
    )
    return tuple(
        finding for finding in errors_of(own_findings) if finding.code not in _CONTRADICTIONS
    )


def _warnings(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(warning_text(finding) for finding in findings)


def _breaking(findings: Iterable[Finding]) -> str:
    names = sorted({finding.resource for finding in findings})
    them = "it stalls until that is fixed" if len(names) == 1 else "they stall until it is fixed"
    return f"this change breaks {named(names)}; {them}"


def _unjudged(context: conflicts.ReviewContext) -> tuple[str, ...]:
    if not context.unjudged:
        return ()
    judged = len(context.dependants)
    return (
        f"the effect of this change on others was checked for {judged} of "
        f"{judged + context.unjudged} resources that refer to this one",
    )


def review_deletion(request: AdmissionRequest, users: Sequence[str]) -> Answer:
    """Review a deletion: always allowed, with a warning if resources (`users`) refer to it."""
    if not users:
        return PASSED
    stall = "it stalls" if len(users) == 1 else "they stall"
    identity = f"{request.kind.kind}/{request.name}"
    return Answer(
        warnings=(f"{identity} is used by {named(users)}; {stall} until it is there again",)
    )


def named(identities: Sequence[str]) -> str:
    """The first names of resources, and the number of the others."""
    shown = ", ".join(identities[:NAMES_SHOWN])
    more = len(identities) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


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

    async def judge(self, body: bytes, dispatch: Dispatch = directly) -> Judgement:
        """Answer the body of a review; `dispatch` begins the judgement of one that must be judged.

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
            return _judged(request, review_deletion(request, conflicts.users_of(ref, self._known)))
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
        context = conflicts.review_context(submission.resource, self._known)
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
