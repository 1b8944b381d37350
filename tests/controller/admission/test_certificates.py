"""The webhook's certificate over its whole life, as data."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from support.servers.certificates import Authority

from snaploom_operator.cluster.certificates import (
    LIFE,
    TRUST_DELAY,
    CertificateSecret,
    encoded,
    expiry,
    issue,
    read_secret,
    rotated,
    secret_data,
    service_names,
)

NAMES = service_names("snaploom-webhook", "system", "cluster.local")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def first() -> CertificateSecret:
    return rotated(CertificateSecret(), b"", NAMES, START)


def verified(held: CertificateSecret, trusted: bytes) -> bool:
    """Whether a client that trusts some authorities accepts the certificate in use."""
    (certificate,) = x509.load_pem_x509_certificates(held.certificate)
    authorities = x509.load_pem_x509_certificates(trusted)
    return any(authority.subject == certificate.issuer for authority in authorities)


def test_the_first_certificate_bears_the_names_of_the_service() -> None:
    (certificate,) = x509.load_pem_x509_certificates(first().certificate)
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert found.get_values_for_type(x509.DNSName) == [
        "snaploom-webhook.system.svc",
        "snaploom-webhook.system.svc.cluster.local",
    ]
    assert verified(first(), first().authorities)


@pytest.mark.parametrize("age", [timedelta(0), DAY, LIFE * 2 / 3 - DAY])
def test_a_young_certificate_is_kept(age: timedelta) -> None:
    held = first()
    assert rotated(held, held.authorities, NAMES, START + age) == held


def test_the_next_certificate_is_prepared_while_the_first_is_in_use() -> None:
    held = first()
    prepared = rotated(held, held.authorities, NAMES, START + LIFE * 2 / 3)
    assert (prepared.certificate, prepared.key) == (held.certificate, held.key)
    assert prepared.next_certificate
    assert prepared.authorities.startswith(held.authorities)
    assert len(x509.load_pem_x509_certificates(prepared.authorities)) == 2


def test_the_next_certificate_waits_until_its_authority_is_trusted() -> None:
    held = first()
    prepared = rotated(held, held.authorities, NAMES, START + LIFE * 2 / 3)
    later = START + LIFE * 2 / 3 + TRUST_DELAY
    assert rotated(prepared, held.authorities, NAMES, later) == prepared
    assert rotated(prepared, prepared.authorities, NAMES, later - timedelta(seconds=1)) == prepared
    followed = rotated(prepared, prepared.authorities, NAMES, later)
    assert followed.certificate == prepared.next_certificate
    assert (followed.next_certificate, followed.next_key) == (b"", b"")
    assert followed.authorities == prepared.authorities


def test_an_old_authority_is_trusted_until_it_ends() -> None:
    held = first()
    prepared = rotated(held, held.authorities, NAMES, START + LIFE * 2 / 3)
    after = rotated(prepared, prepared.authorities, NAMES, START + LIFE)
    assert len(x509.load_pem_x509_certificates(after.authorities)) == 1
    assert verified(after, after.authorities)


@given(st.lists(st.tuples(st.floats(0.001, 45), st.booleans()), min_size=1, max_size=30))
def test_client_that_trusts_the_last_published_authority_accepts_the_served_certificate(
    steps: list[tuple[float, bool]],
) -> None:
    """However rare passes are, and however often publication fails."""
    held, now = first(), START
    published = held.authorities
    for days, is_published in steps:
        now += timedelta(days=days)
        before, held = held, rotated(held, published, NAMES, now)
        was_valid = (expiry(before.certificate) or START) > now
        if was_valid:
            assert verified(held, published)
        if is_published or not was_valid:
            published = held.authorities
        assert (expiry(held.certificate) or START) > now


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param({"certificate": b""}, id="no certificate"),
        pytest.param({"certificate": b"-----BEGIN CERTIFICATE-----\nMII\n"}, id="torn"),
        pytest.param({"key": b""}, id="no key"),
        pytest.param({"key": issue(NAMES, START).key}, id="key of another"),
        pytest.param({"authorities": b""}, id="no authority"),
        pytest.param({"authorities": issue(NAMES, START).authority}, id="authority of another"),
        pytest.param({"certificate": issue(["other"], START).certificate}, id="other names"),
    ],
)
def test_what_is_of_no_use_is_replaced_at_once(spoilt: dict[str, bytes]) -> None:
    held = replace(first(), **spoilt)
    repaired = rotated(held, held.authorities, NAMES, START + DAY)
    assert repaired.certificate != held.certificate
    assert verified(repaired, repaired.authorities)


@pytest.mark.parametrize("jump", [LIFE * 2, -LIFE])
def test_a_clock_that_jumps_gives_a_certificate_that_is_valid_now(jump: timedelta) -> None:
    held = first()
    repaired = rotated(held, held.authorities, NAMES, START + jump)
    (certificate,) = x509.load_pem_x509_certificates(repaired.certificate)
    assert certificate.not_valid_before_utc < START + jump < certificate.not_valid_after_utc


def test_a_secret_comes_back_as_it_was_written() -> None:
    held = first()
    data = secret_data(held)
    assert data["next.crt"] is None
    assert read_secret({"data": {k: v for k, v in data.items() if v is not None}}) == held


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": 1}, {"tls.crt": "§"}, {"tls.crt": "abc"}])
def test_a_secret_of_anything_else_holds_nothing(data: object) -> None:
    assert read_secret({"data": data}) == CertificateSecret()  # type: ignore[dict-item]


def test_another_certificate_of_the_same_names_is_kept(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """An administrator who prefers another authority may put its certificate into the Secret."""
    authority = Authority(tmp_path_factory.mktemp("own"), "own")
    issued = authority.issue(*NAMES)
    held = CertificateSecret(
        issued.certificate.read_bytes(),
        issued.key.read_bytes(),
        authority.certificate.read_bytes(),
    )
    assert rotated(held, b"", NAMES, datetime.now(UTC)) == held
    assert encoded(held.certificate).isascii()
