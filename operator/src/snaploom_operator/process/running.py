"""The operator as a process: its parts, watches and endpoints, and an end without half work."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aiohttp.web import Application
from prometheus_client import CollectorRegistry, Gauge

from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.planning.jdbcurls import ALLOW_URL_VARIABLE
from snaploom.planning.jobvariables import NAMESPACE_VARIABLE, URL_VARIABLE
from snaploom_operator.acting.events import EventRecorder
from snaploom_operator.admission.listening import serving
from snaploom_operator.certificates.keeping import CertificateKeeper
from snaploom_operator.cluster.adapter import open_cluster
from snaploom_operator.cluster.connection import is_in_pod
from snaploom_operator.cluster.ownaccount import own_account
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.requests import Exchange
from snaploom_operator.cluster.resources import OURS
from snaploom_operator.errors import (
    ApiUnavailable,
    ClusterError,
    NotAllowed,
    ResourceUnknown,
    SettingsInvalid,
)
from snaploom_operator.local.runner import LocalRunner, job_environment
from snaploom_operator.metrics import Metrics
from snaploom_operator.process.health import (
    LONGEST_SILENCE,
    health_application,
    metrics_application,
)
from snaploom_operator.process.lease import Leadership, leading
from snaploom_operator.process.operating import Clocks, Operator
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.sqlworkers import running_workers
from snaploom_operator.watching.login import connection_info
from snaploom_operator.watching.watches import Watches

JUMP_LOOKS = 20.0
"""Seconds between two looks at whether the clock was set."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Which cluster, and how the operator runs there."""

    kubeconfig: Path | None = None
    context: str | None = None
    is_local: bool = False
    """On somebody's machine: it runs jobs itself, and is the only one."""
    local_workers: int = 1
    """Jobs that it runs at once."""


@dataclass(frozen=True)
class Running:
    """An operator that works."""

    operator: Operator
    watches: Watches
    health_port: int
    metrics_port: int


@asynccontextmanager
async def running_operator(
    settings: OperatorSettings,
    place: Place,
    give_up: Callable[[Exception], None],
    clocks: Clocks | None = None,
) -> AsyncIterator[Running]:
    """Work until the end of the context; what is in hand is finished then.

    Args:
        settings: what whoever installed it decided.
        place: which cluster, and how.
        give_up: called when it cannot go on: the Lease is lost, or a part of it failed.
        clocks: the time; omitted, that of this machine.

    Raises:
        SettingsInvalid: there is no way to a cluster, or a port is taken.
        ClusterError: the cluster does not answer, lacks our kinds, or refuses something.
    """
    metrics = Metrics(CollectorRegistry())
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            open_cluster(place.kubeconfig, partial(_count, metrics), place.context)
        )
        identity = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        operator = Operator(
            cluster,
            settings,
            EventRecorder(cluster, socket.gethostname(), metrics.posted),
            metrics,
            await stack.enter_async_context(running_workers()),
            is_local=place.is_local,
            clocks=clocks,
        )
        watches = Watches(
            lambda: operator.synchroniser.present,
            settings.watch_namespaces,
            operator.synchroniser.feed,
            partial(connection_info, place.kubeconfig, place.context),
            metrics,
        )
        health = health_application(partial(_dead, operator), partial(_unready, operator))
        ports = [
            await stack.enter_async_context(_listening(application, port))
            for application, port in (
                (health, settings.health_port),
                (metrics_application(metrics.registry), settings.metrics_port),
            )
        ]
        _log.info("health on port %d, metrics on port %d", *ports)
        await _reached(cluster, settings)
        if not place.is_local:
            owner = own_account(settings.namespace) if is_in_pod(place.kubeconfig) else None
            leadership = Leadership(cluster, settings.namespace, settings.lease, identity, owner)
            lost = ClusterError("another operator took over, or the API server was away too long")
            leads = metrics.recoveries.leads

            def on_lost() -> None:
                leads(is_leader=False)
                give_up(lost)

            await stack.enter_async_context(leading(leadership, on_lost))
            leads(is_leader=True)
        await operator.start()
        stack.push_async_callback(operator.stop)
        parts = [
            ("watches", watches.run()),
            ("lists", operator.synchroniser.run(settings.resync_seconds, watches.begin_anew)),
            ("clock", _look_at_the_clock(operator)),
        ]
        if place.is_local:
            environment = stack.enter_context(job_environment(place.kubeconfig, place.context))
            environment[ALLOW_VARIABLE] = settings.allow.dump_json()
            environment[ALLOW_URL_VARIABLE] = str(settings.allow_jdbc_url).lower()
            if settings.lineage.url:
                environment[URL_VARIABLE] = settings.lineage.url
                environment[NAMESPACE_VARIABLE] = settings.lineage.namespace
            jobs = LocalRunner(cluster, environment, settings.watch_namespaces, place.local_workers)
            parts.append(("jobs", jobs.run()))
        else:
            parts.append(("certificate", _keeper(cluster, settings, metrics).run()))
        for name, part in parts:
            await stack.enter_async_context(_beside(name, part, give_up))
        _log.info("the operator works: %d resources", len(operator.store.refs()))
        yield Running(operator, watches, *ports)
    _log.info("the operator has ended")


async def _reached(cluster: Cluster, settings: OperatorSettings) -> None:
    """Ask once before anything is begun, so that what is wrong from the start is told at once."""
    rarest = OURS[MetadataApplicator.__name__]
    try:
        await cluster.list(rarest, namespace=next(iter(settings.watch_namespaces), None))
    except ResourceUnknown as error:
        raise ResourceUnknown(
            "the cluster does not have Snaploom's kinds",
            found=error.message,
            expected="the CustomResourceDefinitions of snaploom.io",
            hint="install the chart, or run: snaploom crds | kubectl apply --server-side -f -",
        ) from error
    except NotAllowed as error:
        raise NotAllowed(
            "the operator's account lacks a right",
            found=error.message,
            expected="the rights that the chart grants",
            hint="with rights in single namespaces only, set watchNamespaces (or --namespace)",
        ) from error
    except ApiUnavailable as error:
        raise ApiUnavailable(
            "the cluster does not answer",
            found=error.message,
            expected="an API server that can be reached",
            hint="try the same kubeconfig with kubectl",
        ) from error


@asynccontextmanager
async def _beside(
    name: str, part: Coroutine[None, None, None], give_up: Callable[[Exception], None]
) -> AsyncIterator[None]:
    """Run a part beside the others, until the end of the context; its failure is everybody's."""

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            _log.error("the part %s failed", name, exc_info=error)
            give_up(error)

    task = asyncio.create_task(part, name=name)
    task.add_done_callback(ended)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def _listening(application: Application, port: int) -> AsyncIterator[int]:
    # Any free port would be another one for each family of addresses.
    host = None if port else "127.0.0.1"
    try:
        async with serving(application, host, port) as bound:
            yield bound
    except OSError as error:
        raise SettingsInvalid(
            "the operator cannot listen there",
            found=f"port {port}: {error.strerror or error}",
            expected="a port that is free",
            hint="set healthPort and metricsPort; 0 takes any free port",
        ) from error


async def _look_at_the_clock(operator: Operator) -> None:
    while True:
        await asyncio.sleep(JUMP_LOOKS)
        jumped = operator.notice_jump()
        if jumped:
            operator.metrics.recoveries.clock_jumped(jumped)


def _keeper(cluster: Cluster, settings: OperatorSettings, metrics: Metrics) -> CertificateKeeper:
    ends = Gauge(
        "snaploom_webhook_certificate_expiry_timestamp_seconds",
        "When the webhook's certificate ends, in seconds since 1970.",
        registry=metrics.registry,
    )
    ends.set(math.nan)  # nothing is known of one that somebody else renews
    return CertificateKeeper(cluster, settings, ends.set, metrics.recoveries.certificate_renewed)


def _count(metrics: Metrics, exchange: Exchange) -> None:
    metrics.requested(exchange.verb, exchange.resource, exchange.code, exchange.seconds)


def _dead(operator: Operator) -> str:
    silence = operator.controller.silence
    if operator.store.is_synced and silence > LONGEST_SILENCE:
        return f"the loop gave no sign of life for {silence:.0f} seconds"
    return ""


def _unready(operator: Operator) -> str:
    return "" if operator.store.is_synced else "not everything was listed yet"
