"""The webhook's HTTPS endpoint, and its metrics."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge, Histogram

from snaploom_operator.admission.judge import Judgement, Outcome
from snaploom_operator.admission.request import LARGEST_BODY
from snaploom_operator.errors import ReviewUnreadable, TextNotJudged, TooManyReviews
from snaploom_operator.serve.http import NoTurn, Turns, peer_of

_log = logging.getLogger(__name__)


REVIEW_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds: most reviews take a few milliseconds, and the API server waits for five seconds."""


class AdmissionMetrics:
    """Histograms and gauges of the webhook."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._reviews = Histogram(
            "snaploom_admission_review_seconds",
            "Duration of a review.",
            ["kind", "operation", "outcome"],
            buckets=REVIEW_BUCKETS,
            registry=registry,
        )
        self.expiry = Gauge(
            "snaploom_webhook_certificate_expiry_timestamp_seconds",
            "Expiry of the certificate in use, in seconds since 1970.",
            registry=registry,
        )
        self.expiry.set(math.nan)  # until a certificate is loaded
        self.in_flight = Gauge(
            "snaploom_admission_reviews_in_flight", "Reviews in progress.", registry=registry
        )
        self._age = Gauge(
            "snaploom_admission_view_age_seconds",
            "Age of the webhook's cache: seconds since the last event of its slowest watch.",
            registry=registry,
        )
        self._size = Gauge(
            "snaploom_admission_view_resources",
            "Resources in the webhook's cache.",
            registry=registry,
        )

    def show_cache(self, age: Callable[[], float], size: Callable[[], float]) -> None:
        self._age.set_function(age)
        self._size.set_function(size)

    def reviewed(self, kind: str, operation: str, outcome: Outcome, seconds: float) -> None:
        """Count an answered request; kind and operation are empty if unknown."""
        self._reviews.labels(kind, operation, outcome.value).observe(seconds)


REVIEW_SECONDS = 4.0
"""Deadline of a review; the API server waits for five seconds (`timeoutSeconds`)."""
MOST_AT_ONCE = 64
"""Concurrent reviews; more would only make all of them late."""
BODY_SECONDS = 1.0
"""Time limit of a body: the API server sends it with the request."""
MOST_BODIES = 64
"""Bodies that are read at a time, before their reviews take a place; 3 MB each at most."""


@dataclass(frozen=True)
class _Reply:
    """A response and its metric labels."""

    response: web.Response
    outcome: Outcome
    kind: str = ""
    operation: str = ""


class Webhook:
    """Handles HTTP requests, so many reviews at a time; `judge` answers the body of one in time."""

    def __init__(
        self,
        judge: Callable[[bytes], Awaitable[Judgement]],
        metrics: AdmissionMetrics,
        deadline: float = REVIEW_SECONDS,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._judge = judge
        self._metrics = metrics
        self._deadline = deadline
        self._most = most
        self._under_way = 0
        self._bodies = Turns(MOST_BODIES)
        metrics.in_flight.set_function(lambda: self._under_way)

    def application(self) -> web.Application:
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_post("/validate", self._validate)
        return application

    async def _validate(self, request: web.Request) -> web.Response:
        begun = time.perf_counter()
        reply = await self._reply_to(request)
        seconds = time.perf_counter() - begun
        self._metrics.reviewed(reply.kind, reply.operation, reply.outcome, seconds)
        return reply.response

    async def _reply_to(self, request: web.Request) -> _Reply:
        try:
            judgement = await self._judged(request)
        except ReviewUnreadable as error:
            return _Reply(_failure(HTTPStatus.BAD_REQUEST, str(error)), Outcome.UNREADABLE)
        except TooManyReviews as error:
            failure = _failure(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return _Reply(failure, Outcome.BUSY)
        except TextNotJudged as error:
            _log.warning("%s", error.message)
            return _Reply(_failure(HTTPStatus.SERVICE_UNAVAILABLE, str(error)), Outcome.FAILED)
        except web.HTTPRequestEntityTooLarge:
            text = f"a review may have {LARGEST_BODY:,} bytes"
            return _Reply(_failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text), Outcome.UNREADABLE)
        except NoTurn:
            text = "too many bodies of one sender at a time"
            return _Reply(_failure(HTTPStatus.SERVICE_UNAVAILABLE, text), Outcome.BUSY)
        except _BodyLate:
            text = f"the body did not come within {BODY_SECONDS:g} second"
            return _Reply(_failure(HTTPStatus.GATEWAY_TIMEOUT, text), Outcome.LATE)
        except TimeoutError:
            text = f"the review was not done within {self._deadline:g} seconds"
            _log.warning("%s", text)
            return _Reply(_failure(HTTPStatus.GATEWAY_TIMEOUT, text), Outcome.LATE)
        except Exception:  # noqa: BLE001 - the last resort: no traceback reaches a user
            _log.exception("review failed")
            text = "internal error of Snaploom's webhook; its log has the details"
            return _Reply(_failure(HTTPStatus.INTERNAL_SERVER_ERROR, text), Outcome.FAILED)
        asked = judgement.request
        kind = asked.kind.kind if asked.is_about_ours else "other"
        response = web.json_response(judgement.document)
        return _Reply(response, judgement.outcome, kind, asked.operation.value)

    async def _judged(self, request: web.Request) -> Judgement:
        async with asyncio.timeout(self._deadline):
            body = await self._body(request)
            if self._under_way >= self._most:
                raise TooManyReviews(
                    "too many concurrent reviews",
                    found=f"{self._under_way} under way",
                    expected=f"at most {self._most} at a time",
                    hint="apply again in some seconds",
                )
            self._under_way += 1
            try:
                return await self._judge(body)
            finally:
                self._under_way -= 1

    async def _body(self, request: web.Request) -> bytes:
        """Read the body before the review takes a place: half a body takes none from others."""
        try:
            async with self._bodies.turn(peer_of(request), BODY_SECONDS):
                return await request.read()
        except (TimeoutError, ConnectionError) as error:
            raise _BodyLate from error


class _BodyLate(Exception):
    """A body did not come in time, or another peer had fewer under way."""


def _failure(status: HTTPStatus, message: str) -> web.Response:
    document = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": message,
        "code": status.value,
    }
    return web.json_response(document, status=status.value)
