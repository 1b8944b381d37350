"""Certificates for tests: an authority of their own, and what it signs."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates of servers; its own is `certificate`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder / name
        self._folder.mkdir()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        signed = (
            _builder(self._name, self._name, self._key.public_key(), expired=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_KEY_USAGE, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(
            self._key.public_key()
        )
        self.certificate = self._folder / "authority.pem"
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def issue(self, host: str, *others: str, expired: bool = False) -> Issued:
        """A certificate for a name or an address, and for others of the same server."""
        names = x509.SubjectAlternativeName([_general(name) for name in (host, *others)])
        return self._signed(f"{host}-{expired}", _named("server"), names, expired=expired)

    def issue_client(self, name: str, organization: str) -> Issued:
        """A certificate by which a client is known, to Kubernetes as a user of a group."""
        return self._signed(name.replace(":", "-"), _named(name, organization), None)

    def _signed(
        self,
        file: str,
        subject: x509.Name,
        names: x509.SubjectAlternativeName | None,
        *,
        expired: bool = False,
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, key.public_key(), expired)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        signed = builder.add_extension(self._identifier, critical=False)
        found = Issued(self._folder / f"{file}.pem", self._folder / f"{file}.key")
        found.certificate.write_bytes(
            signed.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        _write_key(found.key, key)
        return found


@dataclass(frozen=True)
class KeyPair:
    """A key without a certificate, as files."""

    private: Path
    public: Path


def issue_key_pair(folder: Path, name: str) -> KeyPair:
    """A new key to sign tokens with."""
    key = ec.generate_private_key(ec.SECP256R1())
    found = KeyPair(folder / f"{name}.key", folder / f"{name}.pub")
    _write_key(found.private, key)
    found.public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return found


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


_KEY_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _named(name: str, organization: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]
    if organization is not None:
        parts.append(x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, expired: bool
) -> x509.CertificateBuilder:
    today = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - 10 * DAY)
        .not_valid_after(today - DAY if expired else today + 10 * DAY)
    )
