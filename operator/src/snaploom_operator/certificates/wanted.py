"""The webhook's certificate: what it should be, given what is in its Secret and what time it is.

Every certificate has an authority of its own, whose key is thrown away once it has signed: nothing
that could sign another lies anywhere. Since the API server must trust an authority before it meets
a certificate of it, a certificate is renewed in steps, each safe to be the last one for a while:
a new pair is put into the Secret as the next one; its authority is added to what the API server
trusts; only then, and some minutes later, the next pair takes the place of the one in use. An old
authority is trusted until it expires, for pods whose mounted Secret lags behind.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from pydantic import JsonValue

from snaploom_operator.certificates.issuing import LENIENCE, issue, pem

SETTLING = timedelta(minutes=10)
"""How long the next certificate waits after it was made: ample for all API servers of a cluster to
learn of its authority."""
_FILES = {
    "certificate": "tls.crt",
    "key": "tls.key",
    "authorities": "ca.crt",
    "next_certificate": "next.crt",
    "next_key": "next.key",
}


@dataclass(frozen=True)
class Held:
    """What the Secret holds, as PEM; empty for what is not there."""

    certificate: bytes = b""
    """The certificate in use."""
    key: bytes = b""
    """Its private key."""
    authorities: bytes = b""
    """All authorities to be trusted."""
    next_certificate: bytes = b""
    """The certificate that will be in use next."""
    next_key: bytes = b""
    """Its private key."""


def service_names(service: str, namespace: str, domain: str) -> tuple[str, ...]:
    """The names by which API servers reach a Service."""
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.{domain}"


def renewed(held: Held, trusted: bytes, names: Iterable[str], now: datetime) -> Held:
    """What the Secret should hold; the same where nothing is to be done.

    Args:
        held: what it holds.
        trusted: the authorities that the API server trusts, as PEM.
        names: names that the certificate must bear.
        now: the time.
    """
    wanted = tuple(names)
    usable = _is_usable(held.certificate, held.key, held.authorities, wanted, now)
    ready = _is_usable(held.next_certificate, held.next_key, held.authorities, wanted, now)
    if ready and (not usable or _may_follow(held.next_certificate, trusted, now)):
        held = replace(
            held,
            certificate=held.next_certificate,
            key=held.next_key,
            next_certificate=b"",
            next_key=b"",
        )
    elif not usable:
        fresh = issue(wanted, now)
        held = Held(fresh.certificate, fresh.key, held.authorities + fresh.authority)
    elif not ready and is_due(held.certificate, now):
        fresh = issue(wanted, now)
        held = replace(
            held,
            authorities=held.authorities + fresh.authority,
            next_certificate=fresh.certificate,
            next_key=fresh.key,
        )
    return replace(held, authorities=_still_valid(held.authorities, now))


def is_due(certificate: bytes, now: datetime) -> bool:
    """Whether two thirds of a certificate's life have passed."""
    (found,) = _parsed(certificate)
    begin, end = found.not_valid_before_utc, found.not_valid_after_utc
    return now >= begin + (end - begin) * 2 / 3


def expiry(certificates: bytes) -> datetime | None:
    """When the first of some certificates ends; None where there is none to be read."""
    return min((found.not_valid_after_utc for found in _parsed(certificates)), default=None)


def held_in(secret: Mapping[str, JsonValue]) -> Held:
    """What a Secret holds; what is no Base64 counts as missing."""
    data = secret.get("data")
    values = data if isinstance(data, Mapping) else {}
    return Held(**{field: _decoded(values.get(file)) for field, file in _FILES.items()})


def secret_data(held: Held) -> dict[str, JsonValue]:
    """The data of the Secret, as a merge patch: what is not to be there is null."""
    return {file: encoded(getattr(held, field)) or None for field, file in _FILES.items()}


def encoded(data: bytes) -> str:
    """Base64, as the API has it."""
    return base64.b64encode(data).decode()


def decoded_bundle(value: JsonValue) -> bytes:
    """What stands in a `caBundle`; empty where it is no Base64."""
    return _decoded(value)


def _decoded(value: JsonValue) -> bytes:
    if not isinstance(value, str):
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_usable(
    certificate: bytes, key: bytes, authorities: bytes, names: tuple[str, ...], now: datetime
) -> bool:
    found = _parsed(certificate)
    if len(found) != 1 or not found[0].not_valid_before_utc <= now < found[0].not_valid_after_utc:
        return False
    return (
        set(names) <= _names_of(found[0])
        and _belongs_to(key, found[0])
        and any(_has_signed(authority, found[0]) for authority in _parsed(authorities))
    )


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return set()
    return set(names.value.get_values_for_type(x509.DNSName))


def _belongs_to(key: bytes, certificate: x509.Certificate) -> bool:
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return False
    return private.public_key() == certificate.public_key()


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _may_follow(certificate: bytes, trusted: bytes, now: datetime) -> bool:
    (found,) = _parsed(certificate)
    made = found.not_valid_before_utc + LENIENCE
    known = any(_has_signed(authority, found) for authority in _parsed(trusted))
    return known and now >= made + SETTLING


def _still_valid(authorities: bytes, now: datetime) -> bytes:
    found = dict.fromkeys(_parsed(authorities))
    return b"".join(pem(each) for each in found if now < each.not_valid_after_utc)


def _parsed(certificates: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(certificates)
    except ValueError:
        return []
