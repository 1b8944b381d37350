"""The webhook's certificate: issued, rotated in its Secret, and published as `caBundle`."""

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from pydantic import JsonValue

from snaploom_operator.cluster.port import SECRETS, VALIDATING_WEBHOOKS, Cluster
from snaploom_operator.errors import ClusterError, ObjectMissing
from snaploom_operator.objects import JsonObject, mapping_in, metadata_of, objects_in, text_in
from snaploom_operator.settings import OperatorSettings

_log = logging.getLogger(__name__)


LIFE = timedelta(days=90)
"""Validity of a certificate; the last third is left to notice a failing renewal."""
CLOCK_SKEW = timedelta(hours=1)
"""Time from the begin of the validity to now, for clocks that are behind."""


@dataclass(frozen=True)
class Issued:
    """An issued certificate with its key and authority, as PEM."""

    certificate: bytes
    key: bytes
    authority: bytes


def pem(certificate: x509.Certificate) -> bytes:
    """A certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def issue(names: Iterable[str], now: datetime) -> Issued:
    """Issue a certificate for some DNS names; the authority's key is discarded."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    listed = tuple(names)
    subject = _common_name(f"snaploom webhook authority {now:%Y-%m-%d}")
    authority = (
        _builder(subject, subject, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .add_extension(_identifier(authority_key), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _builder(_common_name(listed[0][:64]), subject, key, now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in listed]), False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(purpose, critical=False)
        .add_extension(_identifier(key), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Issued(pem(certificate), private, pem(authority))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFE)
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _identifier(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


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
    authorities: bytes = b""
    """All trusted authorities."""
    next_certificate: bytes = b""
    """The certificate that will be in use next."""
    next_key: bytes = b""


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


CHECK_SECONDS = 60.0
"""Interval of checks: a deleted certificate is restored within a minute, and the steps of a
rotation are that far apart."""


class CertificateRotator:
    """Reconciles the Secret and the ValidatingWebhookConfiguration periodically.

    `on_expiry` is called with the expiry of the certificate in use, in seconds since 1970, and
    `on_renewed` after each renewal.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: OperatorSettings,
        on_expiry: Callable[[float], None] = lambda seconds: None,
        on_renewed: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._namespace = settings.namespace
        self._settings = settings.admission
        self._names = service_names(
            settings.admission.service, settings.namespace, settings.cluster_domain
        )
        self._on_expiry = on_expiry
        self._on_renewed = on_renewed
        self._clock = clock
        self._pause = pause

    async def run(self) -> None:
        """Check periodically; returns at once if the certificate is managed elsewhere."""
        while self._settings.is_certificate_rotated:
            try:
                await self.reconcile()
            except ClusterError as error:
                _log.warning("cannot rotate the webhook's certificate: %s", error.message)
            except Exception:  # noqa: BLE001 - no content of the Secret may end the operator
                _log.exception("cannot rotate the webhook's certificate")
            await self._pause(CHECK_SECONDS)

    async def reconcile(self) -> None:
        """Check once, and make the next step if one is due.

        Raises:
            ClusterError: the Secret is missing, or a request failed.
        """
        secret = await self._cluster.get(
            SECRETS, self._namespace, self._settings.certificate_secret
        )
        configuration = await self._configuration()
        held = read_secret(secret)
        trusted = _trusted(configuration)
        wanted = rotated(held, trusted or b"", self._names, self._clock())
        if wanted != held:
            # The version proves that no other process renewed it in between.
            await self._cluster.patch(
                SECRETS,
                self._namespace,
                self._settings.certificate_secret,
                {"metadata": _version(secret), "data": secret_data(wanted)},
            )
            if wanted.certificate != held.certificate:
                _log.info("the webhook's certificate was renewed")
                self._on_renewed()
            else:
                _log.info("the webhook's next certificate was prepared")
        if configuration is not None and trusted not in (None, wanted.authorities):
            await self._trust(configuration, wanted.authorities)
        ends = expiry(wanted.certificate)
        if ends is not None:
            self._on_expiry(ends.timestamp())

    async def _configuration(self) -> JsonObject | None:
        try:
            return await self._cluster.get(VALIDATING_WEBHOOKS, "", self._settings.configuration)
        except ObjectMissing:
            return None

    async def _trust(self, configuration: JsonObject, authorities: bytes) -> None:
        webhooks: list[JsonValue] = [
            {
                **webhook,
                "clientConfig": {
                    **mapping_in(webhook, "clientConfig"),
                    "caBundle": encoded(authorities),
                },
            }
            for webhook in objects_in(configuration, "webhooks")
        ]
        await self._cluster.patch(
            VALIDATING_WEBHOOKS,
            "",
            self._settings.configuration,
            {"metadata": _version(configuration), "webhooks": webhooks},
        )
        _log.info("the API server trusts the authorities of the webhook's certificates")


def _version(stored: JsonObject) -> dict[str, JsonValue]:
    return {"resourceVersion": text_in(metadata_of(stored), "resourceVersion")}


def _trusted(configuration: JsonObject | None) -> bytes | None:
    """The common `caBundle` of all webhooks; empty if they differ, None if there are none."""
    webhooks = objects_in(configuration or {}, "webhooks")
    clients = (mapping_in(webhook, "clientConfig") for webhook in webhooks)
    bundles = {decoded(client.get("caBundle")) for client in clients}
    if len(bundles) == 1:
        return bundles.pop()
    return b"" if bundles else None
