"""The few operations of OpenSearch that we use, repeated where safe, and its failures."""

import logging
import os
import random
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module  # noqa: TID251 - botocore is an extra of one option
from pathlib import Path
from typing import Any, Self, TypeVar

from opensearchpy import OpenSearch, Transport, Urllib3AWSV4SignerAuth, Urllib3HttpConnection
from opensearchpy.exceptions import ConnectionError as NotConnected
from opensearchpy.exceptions import (
    NotFoundError,
    OpenSearchException,
    RequestError,
    SSLError,
    TransportError,
)

from snaploom.endpoints import AnswerTooLong, EndpointRefused, Pools, pools_of, refuse_host
from snaploom.errors import IndexNotFound, IndexNotPossible, SkippingError
from snaploom.plugins.flint.options import DEFAULT_PORTS, Auth, OpenSearchOptions
from snaploom.policy.addresses import declared_rules
from snaploom.skipping.stores.catalog import WAITING_SECONDS, somebody_waits

# Translates OpenSearch's failures: temporary ones, messages, and no secrets.

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
    """Send a request, again while failures are temporary; `doing` is for messages."""
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
            ) from None
        time.sleep(pause_before(attempt))
    raise IndexStoreFailed(
        f"OpenSearch does not {doing}", found="no attempt was made", expected="at least one attempt"
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
        return IndexStoreFailed(message, found=refused.found, expected=refused.expected)
    if refused is not None:
        return not_asked(refused)
    if isinstance(error, SSLError):
        return _untrusted(message, _of_tls(error))
    if isinstance(error, NotConnected):
        return IndexStoreFailed(
            message,
            found=f"no answer ({type(error).__name__})",
            expected="a server that answers in time",
        )
    if isinstance(error, TransportError):
        is_right = error.status_code in (401, 403)
        return IndexStoreFailed(
            message,
            found=f"{error.status_code} {reason_of(error)}",
            expected="a user that may do this" if is_right else "a request that the server takes",
        )
    return IndexStoreFailed(message, found=type(error).__name__, expected="an answer of OpenSearch")


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


# Operations of OpenSearch that we use, typed, repeated while failures are temporary.

Json = dict[str, Any]
"""A JSON object as OpenSearch sends and takes it."""

# The library logs each failure with a traceback, which Python prints where nobody configured logs.
# Callers of these still get it.
logging.getLogger("opensearch").addHandler(logging.NullHandler())

_QUIETLY_ABSENT = {"ignore": (HTTPStatus.NOT_FOUND.value,)}
_QUIETLY_LOST = {"ignore": (HTTPStatus.CONFLICT.value,)}
"""Answers that are no failures; the library would log them as such."""

MOST_SHARDS = 1024
"""Primary shards of one index: OpenSearch's own limit."""

LONGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of the longest answer, unpacked: a page of the largest rows that we write, 1000 filters of
120 KB in base64, takes 160 MB."""

_EXISTS_ALREADY = "resource_already_exists_exception"


@dataclass(frozen=True)
class Document:
    """One document, with the numbers that a conditional write of it needs."""

    source: Json
    sequence: int
    """Number of the write that made it (`_seq_no`)."""
    term: int
    """Term of the primary shard at that time (`_primary_term`)."""


def _connection(pools: Pools, context: ssl.SSLContext | None) -> type[Urllib3HttpConnection]:
    """The library's connection, through pools that judge addresses and bound answers."""

    class Connection(Urllib3HttpConnection):
        def _create_urllib3_pool(self) -> None:
            if context is None:
                self.pool = pools.plain(self.hostname, port=self.port, timeout=self.timeout)
            else:
                self.pool = pools.secure(
                    self.hostname, port=self.port, timeout=self.timeout, ssl_context=context
                )

    return Connection


class _Transport(Transport):
    """The library's transport, with shorter time limits while a query is planned."""

    def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: object = None,
        timeout: float | None = None,
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        if timeout is None and somebody_waits():
            timeout = WAITING_SECONDS
        return super().perform_request(method, url, params, body, timeout, ignore, headers)


class OpenSearchClient:
    """A connection to OpenSearch; usable from several threads."""

    def __init__(self, options: OpenSearchOptions) -> None:
        """Check the server by its name; nothing is sent yet."""
        self.options = options
        port = DEFAULT_PORTS[options.scheme] if options.port == -1 else options.port
        rules = declared_rules(os.environ)
        try:
            refuse_host(options.host, port, rules)
        except EndpointRefused as error:
            raise not_asked(error) from None
        context = _authorities(options)
        self.library = OpenSearch(
            hosts=[{"host": options.host, "port": port}],
            use_ssl=options.scheme == "https",
            ssl_context=context,
            http_auth=_signer(options),
            headers=_user(options),
            timeout=options.timeout_seconds,
            transport_class=_Transport,
            connection_class=_connection(pools_of(rules, LONGEST_ANSWER), context),
            # Tries are ours: the library's come without a pause between them.
            max_retries=0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.library.close()

    def create_index(self, name: str, mappings: Mapping[str, object], shards: int = 1) -> bool:
        """Create an index; False when there was one already."""
        body = {"settings": {"index": {"number_of_shards": shards}}, "mappings": dict(mappings)}

        def create() -> bool:
            if self.library.indices.exists(index=name):
                return False
            try:
                self.library.indices.create(index=name, body=body)
            except RequestError as error:
                if error.error != _EXISTS_ALREADY:
                    raise
                return False
            return True

        return self._repeated(create, f"create the index {name}")

    def exists(self, name: str) -> bool:
        """Whether there is an index of that name."""
        return self._repeated(
            lambda: bool(self.library.indices.exists(index=name)), f"look for the index {name}"
        )

    def delete_index(self, name: str) -> bool:
        """Delete an index with its documents; False when there was none."""

        def delete() -> bool:
            answer: Json = self.library.indices.delete(index=name, params=dict(_QUIETLY_ABSENT))
            return answer.get("status") != HTTPStatus.NOT_FOUND

        return self._repeated(delete, f"delete the index {name}")

    def mapping(self, name: str) -> Json:
        """Mapping of an index: `properties`, `_meta` and so on; `IndexNotFound` without one."""

        def get() -> Json:
            found: Json = self.library.indices.get_mapping(index=name)
            return _object(next(iter(found.values()))["mappings"])

        return self._found(get, name, "read the mapping of")

    def put_mapping(self, name: str, mappings: Mapping[str, object]) -> None:
        """Add fields to the mapping, and replace its `_meta`."""
        self._found(
            lambda: self.library.indices.put_mapping(index=name, body=dict(mappings)),
            name,
            "change the mapping of",
        )

    def shards(self, name: str) -> int:
        def get() -> int:
            found: Json = self.library.indices.get_settings(index=name)
            number = int(str(next(iter(found.values()))["settings"]["index"]["number_of_shards"]))
            if not 1 <= number <= MOST_SHARDS:
                raise ValueError("a number of shards that no index has")
            return number

        return self._found(get, name, "read the settings of")

    def refresh(self, name: str) -> None:
        self._found(lambda: self.library.indices.refresh(index=name), name, "refresh")

    def get(self, name: str, document_id: str) -> Document | None:
        """One document as it was last written, visible to searches or not."""

        def get() -> Document | None:
            found: Json = self.library.get(index=name, id=document_id, params=dict(_QUIETLY_ABSENT))
            if not found.get("found"):
                return None
            return Document(
                _object(found["_source"]), int(found["_seq_no"]), int(found["_primary_term"])
            )

        return self._repeated(get, f"read the document {document_id}")

    def put(
        self, name: str, document_id: str, source: Mapping[str, object], before: Document | None
    ) -> bool:
        """Write a document only if it is still as it was `before`, or still absent (None).

        Returns:
            False when somebody wrote it meanwhile. That may be this very call: a request whose
            answer is lost is sent again and then finds its own document.
        """
        params: dict[str, object] = {"op_type": "create", **_QUIETLY_LOST}
        if before is not None:
            condition = {"if_seq_no": before.sequence, "if_primary_term": before.term}
            params = {**condition, **_QUIETLY_LOST}

        def put() -> bool:
            answer: Json = self.library.index(
                index=name, id=document_id, body=dict(source), params=dict(params)
            )
            return answer.get("status") != HTTPStatus.CONFLICT

        return self._repeated(put, f"write the document {document_id}")

    def close_moment(self, moment: str) -> None:
        """Close a point in time; one that OpenSearch has dropped already is no error."""
        with suppress(OpenSearchException):
            self.library.delete_pit(body={"pit_id": [moment]})

    def _repeated(self, request: Callable[[], T], doing: str) -> T:
        return repeated(request, self.options.uri, doing)

    def _found(self, request: Callable[[], T], name: str, doing: str) -> T:
        def get() -> T:
            try:
                return request()
            except NotFoundError:
                raise no_such_index(name, self.options.uri) from None

        return self._repeated(get, f"{doing} the index {name}")


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise TypeError("something else than a JSON object")
    return value


def field_at(properties: Mapping[str, Any], name: str) -> Json | None:
    """The mapping of a field, nested ones with dots; None where there is none."""
    outer, _, rest = name.partition(".")
    found: Json | None = properties.get(outer)
    if found is None or not rest:
        return found
    return field_at(found.get("properties", {}), rest)


def no_such_index(name: str, uri: str) -> IndexNotFound:
    """Build the error for an index that does not exist."""
    return IndexNotFound(
        f"OpenSearch at {uri} has no index {name}", found="none", expected="an index that exists"
    )


def _authorities(options: OpenSearchOptions) -> ssl.SSLContext | None:
    """Certificate authorities of the server; by default those of the library."""
    if options.scheme != "https":
        return None
    try:
        authorities = options.ca_file or Urllib3HttpConnection.default_ca_certs()
        if authorities is not None and Path(authorities).is_dir():
            return ssl.create_default_context(capath=authorities)
        return ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise IndexNotPossible(
            "the file of certificate authorities cannot be used",
            found=f"{options.ca_file}: {error.strerror or type(error).__name__}",
            expected="a readable file with certificates in PEM, on each machine that connects",
            hint="set the option ca_file",
        ) from None


def _user(options: OpenSearchOptions) -> dict[str, str]:
    """The header of auth basic, in UTF-8; the library's own takes only Latin-1."""
    if options.auth is not Auth.BASIC:
        return {}
    pair = f"{options.username}:{options.password}".encode()
    return {"authorization": f"Basic {b64encode(pair).decode('ascii')}"}


def _signer(options: OpenSearchOptions) -> Any:
    if options.auth is Auth.SIGV4:
        return Urllib3AWSV4SignerAuth(_aws_credentials(), options.region, options.service)
    return None


def _aws_credentials() -> object:
    try:
        session = import_module("botocore.session").get_session()
    except ImportError:
        raise IndexNotPossible(
            "auth sigv4 needs the package botocore, which finds the credentials and signs",
            found="botocore is not installed",
            hint="pip install 'snaploom[sigv4]'",
        ) from None
    credentials: object = session.get_credentials()
    if credentials is None:
        raise IndexNotPossible(
            "auth sigv4 found no credentials of AWS",
            expected="a role of the pod, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile",
            found="none in the environment, nor in a file or role",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the process a role",
        )
    return credentials
