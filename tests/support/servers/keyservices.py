"""Key management services for tests: one in memory, and one behind a real HTTP server."""

import base64
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from snaploom.errors import KeyUnavailable

NONCE_BYTES = 12
ELSEWHERE = "elsewhere"
"""A label for which the server sends its clients to another one."""


@dataclass
class MemoryKeyService:
    """Wraps as parquet-mr's local wrapping does: base64 of nonce and AES-GCM, the label as
    additional data; `with_length` puts a length of four bytes before it."""

    keys: dict[str, bytes]
    with_length: bool = False
    asked: list[str] = field(default_factory=list)

    def wrap(self, label: str, key: bytes) -> str:
        self.asked.append(f"wrap {label}")
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + AESGCM(self._key(label)).encrypt(nonce, key, label.encode())
        length = len(sealed).to_bytes(4, "little") if self.with_length else b""
        return base64.b64encode(length + sealed).decode("ascii")

    def unwrap(self, label: str, wrapped: str) -> bytes:
        self.asked.append(f"unwrap {label}")
        sealed = base64.b64decode(wrapped)
        if int.from_bytes(sealed[:4], "little") == len(sealed) - 4:
            sealed = sealed[4:]
        try:
            return AESGCM(self._key(label)).decrypt(
                sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], label.encode()
            )
        except InvalidTag:
            raise KeyUnavailable(f"the key {label} does not open this") from None

    def _key(self, label: str) -> bytes:
        if label not in self.keys:
            raise KeyUnavailable(f"there is no key {label}")
        return self.keys[label]


@dataclass(frozen=True)
class TransitServer:
    url: str
    token: str
    requests: list[str]


@contextmanager
def transit_server(service: MemoryKeyService) -> Iterator[TransitServer]:
    """Vault's transit engine over HTTP, as far as wrapping keys needs it."""
    token = secrets.token_hex(16)
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.path)
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["X-Vault-Token"] != token:
                self._answer(403, {"errors": ["permission denied", question]})
                return
            _, _, _, verb, label = self.path.split("/")
            if label == ELSEWHERE:
                self._answer(307, {}, location="/v1/transit/encrypt/columns")
                return
            try:
                self._answer(200, {"data": _transit(service, verb, label, question)})
            except KeyUnavailable:
                self._answer(400, {"errors": ["no such key", question]})

        def _answer(self, status: int, body: object, location: str = "") -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield TransitServer(f"http://127.0.0.1:{server.server_port}/v1/transit", token, requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _transit(
    service: MemoryKeyService, verb: str, label: str, question: dict[str, str]
) -> dict[str, str]:
    if verb == "encrypt":
        key = base64.b64decode(question["plaintext"])
        return {"ciphertext": f"vault:v1:{service.wrap(label, key)}"}
    wrapped = question["ciphertext"].removeprefix("vault:v1:")
    return {"plaintext": base64.b64encode(service.unwrap(label, wrapped)).decode("ascii")}
