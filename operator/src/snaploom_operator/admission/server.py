"""The webhook over HTTPS, with its health and metrics over HTTP on ports of their own.

Health is apart because there may be no certificate yet, and probes must be answered all the same.
Whatever goes wrong with a review, the API server gets a proper answer in time; where that is none
of AdmissionReview, its failure policy decides.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from snaploom_operator.admission.judge import Judgement, Outcome
from snaploom_operator.admission.metrics import AdmissionMetrics
from snaploom_operator.admission.request import LARGEST_BODY
from snaploom_operator.errors import ReviewUnreadable, SqlNotJudged, TooManyReviews

REVIEW_SECONDS = 4.0
"""Deadline of a review; the API server waits for five seconds (`timeoutSeconds`)."""
MOST_AT_ONCE = 64
"""Reviews under way; more would only make all of them late."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Told:
    """An answer, and how it is counted."""

    response: web.Response
    outcome: Outcome
    kind: str = ""
    operation: str = ""


class Webhook:
    """Answers HTTP requests.

    Args:
        judge: judges reviews.
        metrics: what is counted.
        trouble: why it is not ready, for people; empty when it is.
        deadline: seconds that a review may take.
        most: reviews that may be under way.
    """

    def __init__(
        self,
        judge: Callable[[bytes], Awaitable[Judgement]],
        metrics: AdmissionMetrics,
        trouble: Callable[[], str],
        deadline: float = REVIEW_SECONDS,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._judge = judge
        self._metrics = metrics
        self._trouble = trouble
        self._deadline = deadline
        self._most = most
        self._under_way = 0
        metrics.show_in_flight(lambda: self._under_way)

    def application(self) -> web.Application:
        """What is served over HTTPS."""
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_post("/validate", self._validate)
        application.router.add_get("/healthz", self._health)
        application.router.add_get("/readyz", self._readiness)
        return application

    def health_application(self) -> web.Application:
        """What is served over HTTP, for probes."""
        application = web.Application()
        application.router.add_get("/healthz", self._health)
        application.router.add_get("/readyz", self._readiness)
        return application

    def metrics_application(self) -> web.Application:
        """What is served over HTTP, for Prometheus."""
        application = web.Application()
        application.router.add_get("/metrics", self._tell_metrics)
        return application

    async def _validate(self, request: web.Request) -> web.Response:
        begun = time.perf_counter()
        if self._under_way >= self._most:
            told = _Told(_failure(HTTPStatus.SERVICE_UNAVAILABLE, "too many at once"), Outcome.BUSY)
        else:
            self._under_way += 1
            try:
                told = await self._told(request)
            finally:
                self._under_way -= 1
        seconds = time.perf_counter() - begun
        self._metrics.reviewed(told.kind, told.operation, told.outcome, seconds)
        return told.response

    async def _told(self, request: web.Request) -> _Told:
        try:
            judgement = await self._judged(request)
        except ReviewUnreadable as error:
            return _Told(_failure(HTTPStatus.BAD_REQUEST, str(error)), Outcome.UNREADABLE)
        except TooManyReviews as error:
            failure = _failure(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return _Told(failure, Outcome.BUSY)
        except SqlNotJudged as error:
            _log.warning("%s", error)
            return _Told(_failure(HTTPStatus.SERVICE_UNAVAILABLE, str(error)), Outcome.FAILED)
        except web.HTTPRequestEntityTooLarge:
            text = f"a review may have {LARGEST_BODY:,} bytes"
            return _Told(_failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text), Outcome.UNREADABLE)
        except TimeoutError:
            text = f"the review was not done within {self._deadline:g} seconds"
            _log.warning("%s", text)
            return _Told(_failure(HTTPStatus.GATEWAY_TIMEOUT, text), Outcome.LATE)
        except Exception:  # noqa: BLE001 - the last resort: no traceback reaches a user
            _log.exception("a review failed")
            text = "internal error of Snaploom's webhook; its log says more"
            return _Told(_failure(HTTPStatus.INTERNAL_SERVER_ERROR, text), Outcome.FAILED)
        asked = judgement.request
        kind = asked.kind.kind if asked.is_about_ours else "other"
        response = web.json_response(judgement.document)
        return _Told(response, judgement.outcome, kind, asked.operation.value)

    async def _judged(self, request: web.Request) -> Judgement:
        async with asyncio.timeout(self._deadline):
            return await self._judge(await request.read())

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readiness(self, _: web.Request) -> web.Response:
        trouble = self._trouble()
        status = HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK
        return web.Response(text=f"{trouble or 'ok'}\n", status=status)

    async def _tell_metrics(self, _: web.Request) -> web.Response:
        body = generate_latest(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _failure(status: HTTPStatus, message: str) -> web.Response:
    """What is no AdmissionReview: an answer in the form that clients of Kubernetes read."""
    document = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": message,
        "code": status.value,
    }
    return web.json_response(document, status=status.value)
