"""Keeps the webhook's certificate fresh: its Secret, and what the API server trusts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from pydantic import JsonValue

from snaploom_operator.certificates.wanted import (
    decoded_bundle,
    encoded,
    expiry,
    held_in,
    renewed,
    secret_data,
    service_names,
)
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import SECRETS, VALIDATING_WEBHOOKS
from snaploom_operator.errors import ClusterError, ObjectMissing
from snaploom_operator.metadata import metadata_of, text_in
from snaploom_operator.objects import JsonObject
from snaploom_operator.settings import OperatorSettings

LOOK_SECONDS = 60.0
"""Time between two looks: what somebody takes away is back within a minute, and the steps of a
renewal are that far apart."""

_log = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


class CertificateKeeper:
    """Looks at the Secret and at the ValidatingWebhookConfiguration, for ever.

    Args:
        cluster: where they are.
        settings: how they are called.
        tell_expiry: told when the certificate in use ends, in seconds since 1970; for a metric.
        tell_renewed: told that the certificate was renewed; for a metric.
        clock: the time.
        pause: how to wait.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: OperatorSettings,
        tell_expiry: Callable[[float], None] = lambda seconds: None,
        tell_renewed: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = _now,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._namespace = settings.namespace
        self._settings = settings.admission
        self._names = service_names(
            settings.admission.service, settings.namespace, settings.cluster_domain
        )
        self._tell_expiry = tell_expiry
        self._tell_renewed = tell_renewed
        self._clock = clock
        self._pause = pause

    async def run(self) -> None:
        """Look again and again; returns at once where somebody else renews the certificate."""
        while self._settings.is_certificate_rotated:
            try:
                await self.look()
            except ClusterError as error:
                _log.warning("the webhook's certificate could not be looked after: %s", error)
            await self._pause(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once, and make one step where one is due.

        Raises:
            ClusterError: the Secret is not there, or the API server does not do as asked.
        """
        secret = await self._cluster.get(
            SECRETS, self._namespace, self._settings.certificate_secret
        )
        configuration = await self._configuration()
        held = held_in(secret)
        trusted = _trusted(configuration)
        wanted = renewed(held, trusted or b"", self._names, self._clock())
        if wanted != held:
            # The version proves that nobody else renewed it meanwhile.
            await self._cluster.patch(
                SECRETS,
                self._namespace,
                self._settings.certificate_secret,
                {"metadata": _version(secret), "data": secret_data(wanted)},
            )
            if wanted.certificate != held.certificate:
                _log.info("the webhook's certificate was renewed")
                self._tell_renewed()
            else:
                _log.info("the webhook's next certificate was prepared")
        if configuration is not None and trusted not in (None, wanted.authorities):
            await self._trust(configuration, wanted.authorities)
        ends = expiry(wanted.certificate)
        if ends is not None:
            self._tell_expiry(ends.timestamp())

    async def _configuration(self) -> JsonObject | None:
        try:
            return await self._cluster.get(VALIDATING_WEBHOOKS, "", self._settings.configuration)
        except ObjectMissing:
            return None

    async def _trust(self, configuration: JsonObject, authorities: bytes) -> None:
        webhooks: list[JsonValue] = [
            {**webhook, "clientConfig": {**_client(webhook), "caBundle": encoded(authorities)}}
            for webhook in _webhooks(configuration)
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


def _webhooks(configuration: JsonObject) -> list[Mapping[str, JsonValue]]:
    webhooks = configuration.get("webhooks")
    listed = webhooks if isinstance(webhooks, list) else []
    return [webhook for webhook in listed if isinstance(webhook, Mapping)]


def _client(webhook: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    client = webhook.get("clientConfig")
    return client if isinstance(client, Mapping) else {}


def _trusted(configuration: JsonObject | None) -> bytes | None:
    """What every webhook trusts; empty where they differ, None where there is no webhook."""
    webhooks = [] if configuration is None else _webhooks(configuration)
    bundles = {decoded_bundle(_client(webhook).get("caBundle")) for webhook in webhooks}
    if len(bundles) == 1:
        return bundles.pop()
    return b"" if bundles else None
