"""Issues a server certificate, signed by a certificate authority of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

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
