"""Answers requests for pages: only those that read, and only to users that the API server knows."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from typing import Protocol, cast

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge
from pydantic import JsonValue

from snaploom.installed import plugged
from snaploom.models.common import GROUP, EpochNanos, now
from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom_operator.cluster.port import ACCESS_REVIEWS, OURS, TOKEN_REVIEWS, ApiResource, Cluster
from snaploom_operator.decision import Unparsable
from snaploom_operator.errors import ClusterError, NotAuthenticated
from snaploom_operator.objects import JsonObject, Ref, mapping_in, text_in
from snaploom_operator.serve.health import AnswerCache
from snaploom_operator.store.store import Store

_log = logging.getLogger(__name__)


SHOWN = tuple(OURS[kind.__name__] for kind in (OutputDataset, DataSource, SkippingIndex))
"""The kinds whose resources pages show: all that is watched, and all that a user must be able to
list."""
USER_SECONDS = 10.0
"""Seconds for which a user is known by a token that has ended; the API server itself remembers
tokens for as long."""
RIGHT_SECONDS = 30.0
"""Seconds for which a right outlives its removal; kube-apiserver remembers refusals of webhooks for
as long."""
MOST_USERS = 1_000
"""Tokens whose answers are remembered, valid or not; some 2 KB each."""
MOST_RIGHTS = 20_000
"""Answers about one user and one namespace that are remembered; some 0.5 KB each."""
MOST_REVIEWS = 32
"""Reviews at a time; others wait. The API server answers some thousand a second."""
LONGEST_TOKEN = 8_000
"""Characters of a token: aiohttp refuses a header that is longer than 8,190 bytes."""
_EVERYWHERE = ""
_EXPECTED = f"a token of this cluster, of at most {LONGEST_TOKEN:,} characters"


@dataclass(frozen=True)
class User:
    """A user, as the API server knows them."""

    token: str
    """Hash of the token, by which answers are remembered."""
    attributes: JsonObject
    """`username`, `uid`, `groups` and `extra`, as a TokenReview has them."""

    @property
    def subject(self) -> dict[str, JsonValue]:
        """The same, as a SubjectAccessReview names it."""
        named = {key: self.attributes[key] for key in ("uid", "groups", "extra")
                 if key in self.attributes}  # fmt: skip
        return {"user": text_in(self.attributes, "username"), **named}


class Access:
    """Asks the API server; `reviewed` is called with the kind of each review that is sent."""

    def __init__(
        self,
        cluster: Cluster,
        reviewed: Callable[[str], None] = lambda kind: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._reviewed = reviewed
        self._users = AnswerCache[JsonObject](USER_SECONDS, MOST_USERS, clock)
        self._rights = AnswerCache[bool](RIGHT_SECONDS, MOST_RIGHTS, clock)
        self._turn = asyncio.Semaphore(MOST_REVIEWS)

    async def user(self, token: str) -> User:
        """The user with a token.

        Raises:
            NotAuthenticated: the API server does not accept it.
            ClusterError: it could not be asked.
        """
        if not token or len(token) > LONGEST_TOKEN:
            raise NotAuthenticated(
                "the request has no bearer token",
                found=f"a token of {len(token):,} characters" if token else "none",
                expected=_EXPECTED,
            )
        hashed = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
        spec: dict[str, JsonValue] = {"token": token}
        status = await self._users.get((hashed,), lambda: self._ask(TOKEN_REVIEWS, spec))
        attributes = mapping_in(status, "user")
        if status.get("authenticated") is not True or not text_in(attributes, "username"):
            raise NotAuthenticated(
                "the API server does not accept the bearer token",
                found="one that is invalid, or has ended",
                expected=_EXPECTED,
            )
        return User(hashed, attributes)

    async def visible(self, user: User, namespaces: Iterable[str]) -> frozenset[str]:
        """The namespaces among some that a user may see.

        Raises:
            ClusterError: the API server could not be asked.
        """
        asked = sorted(set(namespaces))
        if await self._may_see(user, _EVERYWHERE):
            return frozenset(asked)
        answers = await asyncio.gather(*(self._may_see(user, each) for each in asked))
        return frozenset(each for each, may in zip(asked, answers, strict=True) if may)

    async def _may_see(self, user: User, namespace: str) -> bool:
        key = (user.token, namespace)
        return await self._rights.get(key, lambda: self._may_list(user, namespace))

    async def _may_list(self, user: User, namespace: str) -> bool:
        """Return whether a user may list every kind that is shown; asking ends at the first no."""
        for kind in SHOWN:
            attributes: dict[str, JsonValue] = {
                "namespace": namespace, "verb": "list", "group": GROUP, "resource": kind.plural,
            }  # fmt: skip
            spec = {**user.subject, "resourceAttributes": attributes}
            status = await self._ask(ACCESS_REVIEWS, spec)
            if status.get("allowed") is not True:
                return False
        return True

    async def _ask(self, kind: ApiResource, spec: dict[str, JsonValue]) -> JsonObject:
        """The status of a review, which the API server answers and does not store."""
        manifest: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        async with self._turn:
            self._reviewed(kind.kind)
            return mapping_in(await self._cluster.create(kind, "", manifest), "status")


class PagesMetrics:
    """Counters and gauges of the server of pages."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._requests = Counter(
            "snaploom_pages_requests", "Answered requests.", ["code"], registry=registry
        )
        self._reviews = Counter(
            "snaploom_pages_reviews",
            "TokenReviews and SubjectAccessReviews that were sent.",
            ["kind"],
            registry=registry,
        )
        self.age = Gauge(
            "snaploom_pages_view_age_seconds",
            "Age of the cache of the pages: seconds since the last event of its slowest watch.",
            registry=registry,
        )

    def answered(self, code: int) -> None:
        self._requests.labels(str(code)).inc()

    def reviewed(self, kind: str) -> None:
        self._reviews.labels(kind).inc()


ANSWER_SECONDS = 20.0
"""Time limit of an answer; proxies wait for a minute."""
DOCUMENT_SECONDS = 5.0
"""Seconds for which a document is shown again; an open page asks every five."""
MOST_DOCUMENTS = 32
"""Documents that are held; that of 2,000 outputs has some 2 MB."""


class StatusDocuments(Protocol):
    """Module of the plug-in that draws outputs from their statuses."""

    PAGE_HEADERS: Mapping[str, str]
    """Headers of every page."""
    VERSION_HEADER: str
    """Name of the header with the version of a page."""

    def StatusPage(  # noqa: N802 - it is a class there
        self,
        namespace: str,
        output: OutputDataset,
        now: EpochNanos,
        sources: Mapping[str, DataSource] = ...,
        indexes: tuple[SkippingIndex, ...] = ...,
    ) -> object:
        """One output of a cluster with the objects that belong to it, as last seen."""

    def status_document(self, page: object, *, home: str, version: str) -> str:
        """The page of one output."""

    def statuses_document(
        self,
        pages: Sequence[tuple[object, str]],
        now: EpochNanos,
        *,
        version: str,
        unread: Sequence[str] = (),
    ) -> str:
        """The page of all outputs that a user may see."""


@cache
def documents() -> StatusDocuments:
    """The installed plug-in.

    Raises:
        PackageMissing: none is.
    """
    return cast(StatusDocuments, plugged("snaploom.status", "documents", "the site of outputs"))


_USER = web.RequestKey("user", User)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """Handles HTTP requests; `trouble` returns the cause if it is not ready."""

    def __init__(
        self, store: Store, access: Access, metrics: PagesMetrics, trouble: Callable[[], str]
    ) -> None:
        documents()  # ends the process at its start where there is none
        self._store = store
        self._access = access
        self._metrics = metrics
        self._trouble = trouble
        self._documents = AnswerCache[str](DOCUMENT_SECONDS, MOST_DOCUMENTS, time.monotonic)
        self._turn = asyncio.Semaphore(1)

    def application(self) -> web.Application:
        """The application; it has no route that writes."""
        application = web.Application(middlewares=[self._counted, self._answered])
        for path in ("/", "/index.html"):
            application.router.add_get(path, self._overview)
        application.router.add_get("/outputs/{namespace}/{name}.html", self._output)
        return application

    @web.middleware
    async def _counted(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        response = await handler(request)
        self._metrics.answered(response.status)
        return response

    @web.middleware
    async def _answered(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """An answer to every request, of one sentence where there is no page."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                scheme, _, token = request.headers.get("Authorization", "").partition(" ")
                given = token.strip() if scheme.lower() == "bearer" else ""
                request[_USER] = await self._access.user(given)
                if trouble := self._trouble():
                    return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, f"Not ready: {trouble}.")
                return await handler(request)
        except NotAuthenticated as error:
            return _sentence(
                HTTPStatus.UNAUTHORIZED,
                f"Not authenticated: {error.message}; {error.hint}.",
                **{"WWW-Authenticate": "Bearer"},
            )
        except web.HTTPMethodNotAllowed:
            return _sentence(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Pages are only read: GET and HEAD are answered.",
                Allow="GET, HEAD",
            )
        except web.HTTPNotFound:
            return _sentence(
                HTTPStatus.NOT_FOUND,
                "There is no such output, or you may not list what its namespace has.",
            )
        except (ClusterError, TimeoutError) as error:
            _log.warning("the API server was not asked: %s", error)
            return _sentence(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "The API server does not answer who you are or what you may see; try again.",
            )
        except Exception:  # noqa: BLE001 - the last resort: no traceback reaches a user
            _log.exception("a page failed")
            return _sentence(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "An error of Snaploom's own; the log of the pages has the details.",
            )

    async def _overview(self, request: web.Request) -> web.Response:
        outputs = [ref for ref in self._store.refs() if ref.kind == OutputDataset.__name__]
        seen = await self._access.visible(request[_USER], (ref.namespace for ref in outputs))
        shown = [ref for ref in outputs if ref.namespace in seen]
        moment = now()
        pages, unread = [], []
        for ref in shown:
            held = self._store.get(ref)
            if isinstance(held, OutputDataset):
                page = documents().StatusPage(ref.namespace, held, moment)
                pages.append((page, f"outputs/{ref.namespace}/{ref.name}.html"))
            elif isinstance(held, Unparsable):
                unread.append(f"{ref.namespace}/{ref.name}")
        version = self._version(shown)
        draw = documents().statuses_document
        document = partial(draw, pages, moment, version=version, unread=unread)
        return _page(await self._made(version, document), version)

    async def _output(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        if not await self._access.visible(request[_USER], [namespace]):
            raise web.HTTPNotFound
        ref = Ref(OutputDataset.__name__, namespace, name)
        output = self._store.get(ref)
        if not isinstance(output, OutputDataset):
            raise web.HTTPNotFound
        sources, indexes = self._sources(output, namespace), self._indexes(output, namespace)
        version = self._version([
            ref,
            *(Ref(DataSource.__name__, namespace, each) for each in sorted(sources)),
            *(Ref(SkippingIndex.__name__, namespace, each.name) for each in indexes),
        ])  # fmt: skip
        page = documents().StatusPage(namespace, output, now(), sources, indexes)
        draw = documents().status_document
        document = partial(draw, page, home="../../index.html", version=version)
        return _page(await self._made(version, document), version)

    async def _made(self, version: str, make: Callable[[], str]) -> str:
        """A document, made once for all who ask for it within some seconds, one at a time."""

        async def made() -> str:
            async with self._turn:
                return await asyncio.to_thread(make)

        return await self._documents.get((version,), made)

    def _sources(self, output: OutputDataset, namespace: str) -> dict[str, DataSource]:
        model = output.spec.data_model
        names = (
            model.root_data_source.data_source,
            *(other.data_source for other in model.other_data_sources),
        )
        found = {name: self._store.get(Ref(DataSource.__name__, namespace, name)) for name in names}
        return {name: held for name, held in found.items() if isinstance(held, DataSource)}

    def _indexes(self, output: OutputDataset, namespace: str) -> tuple[SkippingIndex, ...]:
        sources = self._sources(output, namespace)
        kind = SkippingIndex.__name__
        held = (
            self._store.get(Ref(kind, namespace, name))
            for name in self._store.names(namespace, kind)
        )
        return tuple(
            each
            for each in held
            if isinstance(each, SkippingIndex)
            and (
                each.spec.target.output_dataset == output.name
                or each.spec.target.data_source in sources
            )
        )

    def _version(self, refs: Iterable[Ref]) -> str:
        entries = (self._store.entry(ref) for ref in refs)
        known = sorted((each.uid, each.version) for each in entries if each is not None)
        return hashlib.sha256(repr(known).encode()).hexdigest()[:32]


def _page(document: str, version: str) -> web.Response:
    headers = {
        **documents().PAGE_HEADERS,
        documents().VERSION_HEADER: version,
        "Vary": "Authorization, Cookie",
    }
    return web.Response(body=document.encode(), headers=headers)


def _sentence(status: HTTPStatus, text: str, **headers: str) -> web.Response:
    kept = {
        key: documents().PAGE_HEADERS[key] for key in ("Cache-Control", "X-Content-Type-Options")
    }
    return web.Response(text=f"{text}\n", status=status, headers={**kept, **headers})
