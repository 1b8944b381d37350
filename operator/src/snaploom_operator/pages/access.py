"""Users of pages and the namespaces that they may see: the API server decides both.

A user sees a namespace whose outputs, sources and indexes they may list, as `kubectl` would show
them. The token is only handed to the API server, and is remembered as a hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.common import GROUP
from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom_operator.cluster.apiresources import ACCESS_REVIEWS, OURS, TOKEN_REVIEWS
from snaploom_operator.cluster.port import ApiResource, Cluster
from snaploom_operator.errors import NotAuthenticated
from snaploom_operator.objectmetadata import mapping_in, text_in
from snaploom_operator.objects import JsonObject
from snaploom_operator.servers.answercache import AnswerCache

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
_EXPECTED = "a token of this cluster"
_SEND = "send one that kubectl could use, as `Authorization: Bearer TOKEN`"


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
                found="a token that is too long" if token else "none",
                expected=_EXPECTED,
                hint=_SEND,
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
                hint=_SEND,
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
