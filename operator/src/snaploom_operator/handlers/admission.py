"""Reviews by kopf: a handler that judges, and the server that hands it reviews.

The server is ours, by kopf's protocol for servers: with a deadline, a bound, a limit of bodies, and
certificates that are renewed while it serves. kopf compares the old and the new object in the event
loop and remembers each UID, so it gets neither: a review has a number, by which the handler finds
it.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import kopf

from snaploom.models.common import API_VERSION, GROUP
from snaploom_operator.admission.judge import Judgement
from snaploom_operator.admission.request import (
    REVIEW_VERSION,
    AdmissionRequest,
    Answer,
    refusal_text,
)
from snaploom_operator.cluster.port import OURS
from snaploom_operator.process.process import Process
from snaploom_operator.process.webhook import Admission

NUMBER = "number"
"""The header that carries the number of a review."""
_VERSION = API_VERSION.rpartition("/")[2]


class ReviewServer:
    """Serves reviews by kopf's protocol for servers; the parts of the process judge them."""

    def __init__(self, process: Process[Admission]) -> None:
        self._process = process
        self._numbers = itertools.count()
        self._open: dict[str, _Review] = {}

    async def __call__(self, fn: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """Answer reviews, which `fn` dispatches to the handlers, until cancelled."""
        parts = self._process.parts
        judge = partial(parts.judge.judge, dispatch=partial(self._dispatch, fn))
        async with parts.answering(judge) as port:
            yield kopf.WebhookClientConfig(url=f"https://localhost:{port}/validate")
            await asyncio.Event().wait()

    async def judge(self, number: str) -> Answer:
        """Judge the review of a number.

        Raises:
            kopf.PermanentError: it cannot be judged.
        """
        review = self._open[number]
        try:
            review.judgement = await review.judge()
        except Exception as error:
            review.error = error
            raise kopf.PermanentError("the review failed") from error
        return review.judgement.answer

    async def _dispatch(
        self,
        fn: kopf.WebhookFn,
        request: AdmissionRequest,
        judge: Callable[[], Awaitable[Judgement]],
    ) -> Judgement:
        """Judge by kopf's handlers; the judgement has details, which kopf's own answer lacks."""
        number = str(next(self._numbers))
        review = self._open[number] = _Review(judge)
        try:
            await fn(_asked(request), webhook="validate", headers={NUMBER: number})
        finally:
            del self._open[number]
        if review.error is not None:
            raise review.error
        assert review.judgement is not None, "no handler was called"
        return review.judgement


@dataclass
class _Review:
    """A review in progress."""

    judge: Callable[[], Awaitable[Judgement]]
    judgement: Judgement | None = None
    error: Exception | None = None


def admission_registry(server: ReviewServer) -> kopf.OperatorRegistry:
    """Create a registry with the handler of reviews."""
    # kopf logs a denial as an error of the handler; errors of the others stay.
    logger = logging.getLogger("kopf.objects")
    logger.addFilter(lambda record: "'validate'" not in record.getMessage())
    registry = kopf.OperatorRegistry()

    @kopf.on.validate(GROUP, _VERSION, kopf.EVERYTHING, id="validate", registry=registry)
    async def validate(headers: Mapping[str, str], warnings: list[str], **_: object) -> None:
        answer = await server.judge(headers[NUMBER])
        warnings.extend(answer.warnings)
        if answer.refusal is not None:
            code = answer.refusal.status.value
            raise kopf.AdmissionError(refusal_text(answer.refusal), code=code)

    return registry


def _asked(request: AdmissionRequest) -> Any:  # kopf exports no type of it
    """The review for kopf: which handlers it concerns, and an object without content."""
    resource = OURS[request.kind.kind]
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"uid": ""}}
    return {
        "apiVersion": REVIEW_VERSION,
        "kind": "AdmissionReview",
        "request": {
            "uid": request.uid,
            "resource": {
                "group": resource.group,
                "version": resource.version,
                "resource": resource.plural,
            },
            "operation": request.operation.value,
            "userInfo": {"username": request.user_info.username},
            "object": body,
        },
    }
