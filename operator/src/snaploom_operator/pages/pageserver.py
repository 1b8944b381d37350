"""Answers requests for pages: only those that read, and only to users that the API server knows.

What a user may not see and what does not exist get the same answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from http import HTTPStatus

from aiohttp import web

from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import now
from snaploom.site.document import PAGE_HEADERS, VERSION_HEADER
from snaploom.site.statusdocument import status_document, statuses_document
from snaploom.site.statuspage import StatusPage
from snaploom_operator.errors import ClusterError, NotAuthenticated
from snaploom_operator.objects import Ref
from snaploom_operator.pages.access import Access, User
from snaploom_operator.pages.pagesmetrics import PagesMetrics
from snaploom_operator.servers.answercache import AnswerCache
from snaploom_operator.store.resourceparser import Refused
from snaploom_operator.store.store import Store

ANSWER_SECONDS = 20.0
"""Time limit of an answer; proxies wait for a minute."""
DOCUMENT_SECONDS = 5.0
"""Seconds for which a document is shown again; an open page asks every five."""
MOST_DOCUMENTS = 32
"""Documents that are held; that of 2,000 outputs has some 2 MB."""
_USER = web.RequestKey("user", User)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


class PageServer:
    """Handles HTTP requests.

    Args:
        store: what is known of the cluster.
        access: who asks, and what they may see.
        metrics: of the process.
        trouble: returns why it is not ready; empty if it is.
    """

    def __init__(
        self, store: Store, access: Access, metrics: PagesMetrics, trouble: Callable[[], str]
    ) -> None:
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
                request[_USER] = await self._access.user(_token(request))
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
                page = StatusPage(ref.namespace, held, moment)
                pages.append((page, f"outputs/{ref.namespace}/{ref.name}.html"))
            elif isinstance(held, Refused):
                unread.append(f"{ref.namespace}/{ref.name}")
        version = self._version(shown)
        document = partial(statuses_document, pages, moment, version=version, unread=unread)
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
        page = StatusPage(namespace, output, now(), sources, indexes)
        document = partial(status_document, page, home="../../index.html", version=version)
        return _page(await self._made(version, document), version)

    async def _made(self, version: str, make: Callable[[], str]) -> str:
        """A document, made once for all who ask for it within some seconds, one at a time."""

        async def made() -> str:
            async with self._turn:
                return await asyncio.to_thread(make)

        return await self._documents.get((version,), made)

    def _sources(self, output: OutputDataset, namespace: str) -> dict[str, DataSource]:
        """The sources of an output by name, as far as they exist."""
        model = output.spec.data_model
        names = (
            model.root_data_source.data_source,
            *(other.data_source for other in model.other_data_sources),
        )
        found = {name: self._store.get(Ref(DataSource.__name__, namespace, name)) for name in names}
        return {name: held for name, held in found.items() if isinstance(held, DataSource)}

    def _indexes(self, output: OutputDataset, namespace: str) -> tuple[SkippingIndex, ...]:
        """The indexes on an output and on its sources."""
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
        """Changes when any of some resources does."""
        entries = (self._store.entry(ref) for ref in refs)
        known = sorted((each.uid, each.version) for each in entries if each is not None)
        return hashlib.sha256(repr(known).encode()).hexdigest()[:32]


def _token(request: web.Request) -> str:
    """The bearer token of a request; empty without one."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _page(document: str, version: str) -> web.Response:
    headers = {**PAGE_HEADERS, VERSION_HEADER: version, "Vary": "Authorization, Cookie"}
    return web.Response(body=document.encode(), headers=headers)


def _sentence(status: HTTPStatus, text: str, **headers: str) -> web.Response:
    kept = {key: PAGE_HEADERS[key] for key in ("Cache-Control", "X-Content-Type-Options")}
    return web.Response(text=f"{text}\n", status=status, headers={**kept, **headers})
