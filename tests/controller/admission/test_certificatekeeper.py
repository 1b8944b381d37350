"""The webhook's certificate in a cluster: its Secret, and what the API server trusts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.controllerobjects import Raw
from support.fakecluster import FakeCluster

from snaploom_operator.certificates.rotation import CertificateSecret, decoded_bundle, read_secret
from snaploom_operator.certificates.rotator import CertificateRotator
from snaploom_operator.cluster.apiresources import SECRETS, VALIDATING_WEBHOOKS
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.operatormetrics import Metrics
from snaploom_operator.operatorsettings import AdmissionSettings, OperatorSettings

NAMESPACE = "snaploom-system"
SETTINGS = OperatorSettings(admission=AdmissionSettings())
START = datetime(2026, 1, 1, tzinfo=UTC)


class Ground:
    """A cluster with the chart's empty Secret and its webhooks, and a clock that is set by hand."""

    def __init__(self) -> None:
        self.cluster = FakeCluster(namespaces=[NAMESPACE])
        self.time = START
        self.expiries: list[float] = []
        self.metrics = Metrics(CollectorRegistry())
        self.keeper = CertificateRotator(
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
        await self.keeper.reconcile()

    async def held(self) -> CertificateSecret:
        return read_secret(await self.cluster.get(SECRETS, NAMESPACE, "snaploom-webhook"))

    async def trusted(self) -> list[bytes]:
        found: Any = await self.cluster.get(VALIDATING_WEBHOOKS, "", "snaploom")
        return [decoded_bundle(w["clientConfig"].get("caBundle")) for w in found["webhooks"]]

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
def ground() -> Ground:
    return Ground()


async def test_an_empty_secret_is_filled_and_every_webhook_trusts_it(ground: Ground) -> None:
    await ground.install()
    await ground.reconcile()
    held = await ground.held()
    assert held.certificate
    assert await ground.trusted() == [held.authorities] * 2
    assert ground.expiries == [(START + timedelta(days=90)).timestamp()]


async def test_the_rest_of_the_configuration_stays_as_it_was(ground: Ground) -> None:
    await ground.install(1)
    await ground.reconcile()
    found: Any = await ground.cluster.get(VALIDATING_WEBHOOKS, "", "snaploom")
    (webhook,) = found["webhooks"]
    del webhook["clientConfig"]["caBundle"]
    assert webhook == a_configuration(1)["webhooks"][0]


async def test_looking_again_writes_nothing(ground: Ground) -> None:
    await ground.install()
    await ground.reconcile()
    versions = await ground.versions()
    for _ in range(3):
        await ground.reconcile(days=10)
    assert await ground.versions() == versions


async def test_a_renewal_never_serves_what_is_not_trusted(ground: Ground) -> None:
    await ground.install()
    await ground.reconcile()
    served = {(await ground.held()).certificate}
    for _ in range(500):
        before = (await ground.trusted())[0]
        await ground.reconcile(hours=12)
        held = await ground.held()
        if held.certificate not in served:
            served.add(held.certificate)
            assert held.authorities == before  # published in an earlier step
    assert len(served) >= 4
    renewals = ground.metrics.registry.get_sample_value(
        "snaploom_webhook_certificate_renewals_total"
    )
    assert renewals == len(served)


async def test_what_somebody_changed_is_put_right(ground: Ground) -> None:
    await ground.install()
    await ground.reconcile()
    patch: Any = {"webhooks": a_configuration(2)["webhooks"]}
    await ground.cluster.patch(VALIDATING_WEBHOOKS, "", "snaploom", patch)
    assert await ground.trusted() == [b"", b""]
    await ground.reconcile()
    assert await ground.trusted() == [(await ground.held()).authorities] * 2


async def test_without_webhooks_the_certificate_is_made_all_the_same(ground: Ground) -> None:
    await ground.install(0)
    await ground.reconcile()
    versions = await ground.versions()
    await ground.reconcile()
    assert (await ground.held()).certificate
    assert await ground.versions() == versions


async def test_without_a_secret_it_is_said_and_tried_again(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ObjectMissing):
        await ground.reconcile()
    await run_for(ground, looks=2)
    assert sum("cannot rotate" in text for text in caplog.messages) == 2


async def test_nothing_is_renewed_where_cert_manager_does() -> None:
    settings = OperatorSettings(admission=AdmissionSettings(is_certificate_rotated=False))
    await CertificateRotator(FakeCluster(), settings).run()


async def run_for(ground: Ground, looks: int) -> None:
    """Run the keeper's own loop for some looks."""
    keeper = CertificateRotator(ground.cluster, SETTINGS, pause=ending_after(looks))
    with pytest.raises(asyncio.CancelledError):
        await keeper.run()


def ending_after(pauses: int) -> Callable[[float], Awaitable[None]]:
    taken: list[float] = []

    async def pause(seconds: float) -> None:
        taken.append(seconds)
        if len(taken) == pauses:
            raise asyncio.CancelledError

    return pause
