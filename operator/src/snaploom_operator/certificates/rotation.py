"""The desired content of the certificate's Secret, from its current content and the time.

Every certificate has an authority of its own, whose key is discarded after signing: no stored key
could sign another certificate. Since the API server must trust an authority before it sees a
certificate of it, a certificate is renewed in steps, after each of which the process may stop: a
new pair is added to the Secret as the next one; its authority is added to the trusted ones; only
then, and some minutes later, the next pair replaces the one in use. An old authority is trusted
until it expires, for pods whose mounted Secret lags behind.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from pydantic import JsonValue

from snaploom_operator.certificates.issuer import CLOCK_SKEW, issue, pem
from snaploom_operator.objectmetadata import mapping_in
from snaploom_operator.objects import JsonObject

TRUST_DELAY = timedelta(minutes=10)
"""Delay between issuing and using a certificate: ample for all API servers of a cluster to load its
authority."""
_FILES = {
    "certificate": "tls.crt",
    "key": "tls.key",
    "authorities": "ca.crt",
    "next_certificate": "next.crt",
    "next_key": "next.key",
}


@dataclass(frozen=True)
class CertificateSecret:
    """The content of the Secret, as PEM; missing keys are empty."""

    certificate: bytes = b""
    """The certificate in use."""
    key: bytes = b""
    """Its private key."""
    authorities: bytes = b""
    """All trusted authorities."""
    next_certificate: bytes = b""
    """The certificate that will be in use next."""
    next_key: bytes = b""
    """Its private key."""


def service_names(service: str, namespace: str, domain: str) -> tuple[str, ...]:
    """The DNS names of a Service that API servers use."""
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.{domain}"


def rotated(
    held: CertificateSecret, trusted: bytes, names: Iterable[str], now: datetime
) -> CertificateSecret:
    """The desired content of the Secret; unchanged if nothing is due.

    `trusted` are the authorities that the API server trusts, as PEM.
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
        held = CertificateSecret(fresh.certificate, fresh.key, held.authorities + fresh.authority)
    elif not ready and _is_due(held.certificate, now):
        fresh = issue(wanted, now)
        held = replace(
            held,
            authorities=held.authorities + fresh.authority,
            next_certificate=fresh.certificate,
            next_key=fresh.key,
        )
    return replace(held, authorities=_still_valid(held.authorities, now))


def _is_due(certificate: bytes, now: datetime) -> bool:
    (found,) = _parsed(certificate)
    begin, end = found.not_valid_before_utc, found.not_valid_after_utc
    return now >= begin + (end - begin) * 2 / 3


def expiry(certificates: bytes) -> datetime | None:
    """The earliest expiry of some certificates; None if none can be parsed."""
    return min((found.not_valid_after_utc for found in _parsed(certificates)), default=None)


def read_secret(secret: JsonObject) -> CertificateSecret:
    """Parse the data of a Secret; invalid Base64 counts as missing."""
    data = mapping_in(secret, "data")
    return CertificateSecret(**{field: decoded(data.get(file)) for field, file in _FILES.items()})


def secret_data(held: CertificateSecret) -> dict[str, JsonValue]:
    """The data of the Secret as a merge patch: missing keys are null."""
    return {file: encoded(getattr(held, field)) or None for field, file in _FILES.items()}


def encoded(data: bytes) -> str:
    """Data as Base64."""
    return base64.b64encode(data).decode()


def decoded(value: JsonValue) -> bytes:
    """Decoded Base64; empty if it is invalid."""
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
    made = found.not_valid_before_utc + CLOCK_SKEW
    known = any(_has_signed(authority, found) for authority in _parsed(trusted))
    return known and now >= made + TRUST_DELAY


def _still_valid(authorities: bytes, now: datetime) -> bytes:
    found = dict.fromkeys(_parsed(authorities))
    return b"".join(pem(each) for each in found if now < each.not_valid_after_utc)


def _parsed(certificates: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(certificates)
    except ValueError:
        return []
