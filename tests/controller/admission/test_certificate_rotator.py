"""The webhook's certificate in a cluster: its Secret, and what the API server trusts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.operator.controllerobjects import Raw
from support.operator.fakecluster import FakeCluster

from snaploom_operator.cluster.certificates import (
    CertificateRotator,
    CertificateSecret,
    decoded,
    read_secret,
)
from snaploom_operator.cluster.port import SECRETS, VALIDATING_WEBHOOKS
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.serve.metrics import Metrics
from snaploom_operator.settings import AdmissionSettings, OperatorSettings

NAMESPACE = "snaploom-system"
SETTINGS = OperatorSettings(admission=AdmissionSettings())
START = datetime(2026, 1, 1, tzinfo=UTC)


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


async def test_an_empty_secret_is_filled_and_every_webhook_trusts_it(
    installed: Installation,
) -> None:
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


async def test_without_webhooks_the_certificate_is_made_all_the_same(
    installed: Installation,
) -> None:
    await installed.install(0)
    await installed.reconcile()
    versions = await installed.versions()
    await installed.reconcile()
    assert (await installed.held()).certificate
    assert await installed.versions() == versions


async def test_missing_secret_is_logged_and_the_rotation_retried(
    installed: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ObjectMissing):
        await installed.reconcile()
    await run_for(installed, looks=2)
    assert sum("cannot rotate" in text for text in caplog.messages) == 2


async def test_nothing_is_renewed_where_cert_manager_does() -> None:
    settings = OperatorSettings(admission=AdmissionSettings(is_certificate_rotated=False))
    await CertificateRotator(FakeCluster(), settings).run()


async def run_for(installed: Installation, looks: int) -> None:
    """Run the rotator's own loop for some passes."""
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
