"""Rotates the webhook's certificate: its Secret and the `caBundle` of the webhook configuration."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from pydantic import JsonValue

from snaploom_operator.certificates.rotation import (
    decoded,
    encoded,
    expiry,
    read_secret,
    rotated,
    secret_data,
    service_names,
)
from snaploom_operator.cluster.apiresources import SECRETS, VALIDATING_WEBHOOKS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ClusterError, ObjectMissing
from snaploom_operator.objectmetadata import mapping_in, metadata_of, objects_in, text_in
from snaploom_operator.objects import JsonObject
from snaploom_operator.operatorsettings import OperatorSettings

CHECK_SECONDS = 60.0
"""Interval of checks: a deleted certificate is restored within a minute, and the steps of a
rotation are that far apart."""

_log = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


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
        clock: Callable[[], datetime] = _now,
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
