"""The webhook's certificate over its whole life, as data."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from support.operator.fakecluster import FakeCluster
from support.operator.reviews import Raw
from support.servers.certificates import Authority

from snaploom_operator.cluster.certificates import (
    LIFE,
    TRUST_DELAY,
    CertificateRotator,
    CertificateSecret,
    decoded,
    encoded,
    expiry,
    issue,
    read_secret,
    rotated,
    secret_data,
    service_names,
)
from snaploom_operator.cluster.port import SECRETS, VALIDATING_WEBHOOKS
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.serve.metrics import Metrics
from snaploom_operator.settings import AdmissionSettings, OperatorSettings

NAMES = service_names("snaploom-webhook", "system", "cluster.local")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def first() -> CertificateSecret:
    return rotated(CertificateSecret(), b"", NAMES, START)


def verified(held: CertificateSecret, trusted: bytes) -> bool:
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
def test_client_that_trusts_the_last_published_authority_accepts_the_served_certificate(steps):
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


def test_another_certificate_of_the_same_names_is_kept(tmp_path_factory):
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


NAMESPACE = "snaploom-system"
SETTINGS = OperatorSettings(admission=AdmissionSettings())


class Installation:
    """A cluster with the chart's empty Secret and its webhooks, and a clock that is set by hand."""

    def __init__(self) -> None:
        self.cluster = FakeCluster(namespaces=[NAMESPACE])
        self.time = START
        self.expiries: list[float] = []
        self.metrics = Metrics(CollectorRegistry())
        self.rotator = CertificateRotator(
            self.cluster,
            SETTINGS,
            self.expiries.append,
            self.metrics.recoveries.certificate_renewed,
            clock=lambda: self.time,
        )

    async def install(self, webhooks: int = 2) -> None:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "snaploom-webhook"}}
        await self.cluster.create(SECRETS, NAMESPACE, {**secret, "type": "Opaque"})
        await self.cluster.create(VALIDATING_WEBHOOKS, "", a_configuration(webhooks))

    async def reconcile(self, **later: float) -> None:
        self.time += timedelta(**later)
        await self.rotator.reconcile()

    async def held(self) -> CertificateSecret:
        return read_secret(await self.cluster.get(SECRETS, NAMESPACE, "snaploom-webhook"))

    async def trusted(self) -> list[bytes]:
        found: Any = await self.cluster.get(VALIDATING_WEBHOOKS, "", "snaploom")
        return [decoded(w["clientConfig"].get("caBundle")) for w in found["webhooks"]]

    async def versions(self) -> list[str]:
        secret: Any = await self.cluster.get(SECRETS, NAMESPACE, "snaploom-webhook")
        webhooks: Any = await self.cluster.get(VALIDATING_WEBHOOKS, "", "snaploom")
        return [each["metadata"]["resourceVersion"] for each in (secret, webhooks)]


def a_configuration(webhooks: int) -> Raw:
    client = {"service": {"name": "snaploom-webhook", "namespace": NAMESPACE, "path": "/validate"}}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "snaploom"},
        "webhooks": [
            {
                "name": f"w{number}.snaploom.io",
                "clientConfig": client,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 5,
            }
            for number in range(webhooks)
        ],
    }


@pytest.fixture
def installed() -> Installation:
    return Installation()


async def test_an_empty_secret_is_filled_and_every_webhook_trusts_it(installed):
    await installed.install()
    await installed.reconcile()
    held = await installed.held()
    assert held.certificate
    assert await installed.trusted() == [held.authorities] * 2
    assert installed.expiries == [(START + timedelta(days=90)).timestamp()]


async def test_the_rest_of_the_configuration_stays_as_it_was(installed: Installation) -> None:
    await installed.install(1)
    await installed.reconcile()
    found: Any = await installed.cluster.get(VALIDATING_WEBHOOKS, "", "snaploom")
    (webhook,) = found["webhooks"]
    del webhook["clientConfig"]["caBundle"]
    assert webhook == a_configuration(1)["webhooks"][0]


async def test_another_pass_writes_nothing(installed: Installation) -> None:
    await installed.install()
    await installed.reconcile()
    versions = await installed.versions()
    for _ in range(3):
        await installed.reconcile(days=10)
    assert await installed.versions() == versions


async def test_a_renewal_never_serves_what_is_not_trusted(installed: Installation) -> None:
    await installed.install()
    await installed.reconcile()
    served = {(await installed.held()).certificate}
    for _ in range(500):
        before = (await installed.trusted())[0]
        await installed.reconcile(hours=12)
        held = await installed.held()
        if held.certificate not in served:
            served.add(held.certificate)
            assert held.authorities == before  # published in an earlier step
    assert len(served) >= 4
    renewals = installed.metrics.registry.get_sample_value(
        "snaploom_webhook_certificate_renewals_total"
    )
    assert renewals == len(served)


async def test_a_changed_configuration_is_restored(installed: Installation) -> None:
    await installed.install()
    await installed.reconcile()
    patch: Any = {"webhooks": a_configuration(2)["webhooks"]}
    await installed.cluster.patch(VALIDATING_WEBHOOKS, "", "snaploom", patch)
    assert await installed.trusted() == [b"", b""]
    await installed.reconcile()
    assert await installed.trusted() == [(await installed.held()).authorities] * 2


async def test_without_webhooks_the_certificate_is_made_all_the_same(installed):
    await installed.install(0)
    await installed.reconcile()
    versions = await installed.versions()
    await installed.reconcile()
    assert (await installed.held()).certificate
    assert await installed.versions() == versions


async def test_missing_secret_is_logged_and_the_rotation_retried(installed, caplog):
    with pytest.raises(ObjectMissing):
        await installed.reconcile()
    await run_for(installed, looks=2)
    assert sum("cannot rotate" in text for text in caplog.messages) == 2


async def test_nothing_is_renewed_where_cert_manager_does() -> None:
    settings = OperatorSettings(admission=AdmissionSettings(is_certificate_rotated=False))
    await CertificateRotator(FakeCluster(), settings).run()


async def run_for(installed: Installation, looks: int) -> None:
    rotator = CertificateRotator(installed.cluster, SETTINGS, pause=ending_after(looks))
    with pytest.raises(asyncio.CancelledError):
        await rotator.run()


def ending_after(pauses: int) -> Callable[[float], Awaitable[None]]:
    taken: list[float] = []

    async def pause(seconds: float) -> None:
        taken.append(seconds)
        if len(taken) == pauses:
            raise asyncio.CancelledError

    return pause
