"""Signature version 4 of AWS, checked by its specification and nothing else.

Deliberately shares no code with any library that signs.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from support.servers.guardedproxy import Request

ALGORITHM = "AWS4-HMAC-SHA256"
CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True)
class Account:
    """Who may send requests, and for what."""

    key_id: str
    secret: str
    region: str
    service: str
    token: str = ""

    def refuse(self, request: Request) -> str:
        """Why a request is refused; empty when its signature is right."""
        parts = re.fullmatch(
            rf"{ALGORITHM} Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)",
            request.headers.get("authorization", ""),
        )
        if parts is None:
            return "there is no signature"
        credential, signed, signature = parts.groups()
        moment = request.headers.get("x-amz-date", "")
        if credential != f"{self.key_id}/{self.scope(moment)}":
            return f"the credential is for {credential.partition('/')[2]}"
        sent = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(datetime.now(UTC) - sent) > CLOCK_SKEW:
            return "the request is of another time"
        names = signed.split(";")
        needed = {name for name in request.headers if name.startswith("x-amz-")} | {"host"}
        if needed - set(names):
            return f"not signed: {sorted(needed - set(names))}"
        if request.headers.get("x-amz-security-token", "") != self.token:
            return "the session token is another one"
        digest = hashlib.sha256(request.body).hexdigest()
        if request.headers.get("x-amz-content-sha256", digest) != digest:
            return "the body is not the one that was signed"
        wanted = self.sign(moment, canonical(request, names, digest))
        return "" if hmac.compare_digest(wanted, signature) else "the signature does not match"

    def scope(self, moment: str) -> str:
        return f"{moment[:8]}/{self.region}/{self.service}/aws4_request"

    def signing_key(self, day: str) -> bytes:
        key = f"AWS4{self.secret}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key

    def sign(self, moment: str, canonical_request: str) -> str:
        digest = hashlib.sha256(canonical_request.encode()).hexdigest()
        text = "\n".join([ALGORITHM, moment, self.scope(moment), digest])
        return hmac.digest(self.signing_key(moment[:8]), text.encode(), "sha256").hex()


def canonical(request: Request, names: list[str], digest: str) -> str:
    """The canonical request, from what came over the wire."""
    path, _, query = request.target.partition("?")
    headers = "".join(f"{name}:{_trimmed(request.headers, name)}\n" for name in names)
    # Every service but S3 encodes the path that is sent once more.
    segments = "/".join(quote(segment, safe="-_.~") for segment in path.split("/"))
    return "\n".join([request.method, segments, _query(query), headers, ";".join(names), digest])


def _query(text: str) -> str:
    pairs = [pair.partition("=") for pair in text.split("&") if pair]
    encoded = [
        (quote(unquote(name), safe="-_.~"), quote(unquote(value), safe="-_.~"))
        for name, _, value in pairs
    ]
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def _trimmed(headers: Mapping[str, str], name: str) -> str:
    return re.sub(" +", " ", headers.get(name, "").strip())
