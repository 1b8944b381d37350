"""Actions that create and delete the objects of a run."""

from __future__ import annotations

from snaploom.errors import SnaploomError
from snaploom.models.run import CurrentRun
from snaploom.planning.bundle import Bundle
from snaploom.planning.secretvariables import secret_keys
from snaploom_operator.actions import Create, Delete
from snaploom_operator.cluster.apiresources import CONFIG_MAPS
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.decisionsettings import DecideSettings
from snaploom_operator.decide.faults import Fault
from snaploom_operator.decide.runview import RunView
from snaploom_operator.instants import known_instant
from snaploom_operator.manifests.configmaps import bundle_config_map, report_name
from snaploom_operator.objectmetadata import Metadata
from snaploom_operator.objects import Application
from snaploom_operator.observed import OwnedConfigMap
from snaploom_operator.submitters.base import RunRequest
from snaploom_operator.submitters.settingsmerge import merged_settings


def creations(
    view: RunView, current: CurrentRun, settings: DecideSettings
) -> tuple[Create, Create] | Fault:
    """Create the Bundle's ConfigMap, then the application; a fault if that is impossible."""
    bundle = view.bundle_of(current.action)
    if bundle is None:
        return Fault(Reason.INTERNAL_ERROR, "the declarations of the run are unknown")
    form = settings.forms[view.submitter]
    try:
        bundled = bundle_config_map(view.owner, current.name, bundle)
        name = Metadata.of(bundled).name
        application = form.manifest(_request(view, current, settings, bundle, name))
    except SnaploomError as error:
        return Fault(_reason(error.reason), str(error))
    return Create(CONFIG_MAPS, bundled), Create(form.resource, application)


def deletion(application: Application, namespace: str, settings: DecideSettings) -> Delete:
    """The action that deletes an application."""
    resource = settings.forms[application.submitter].resource
    return Delete(resource, namespace, application.name, application.uid)


def config_map_deletion(config_map: OwnedConfigMap, namespace: str) -> Delete:
    """The action that deletes a ConfigMap of ours."""
    return Delete(CONFIG_MAPS, namespace, config_map.name, config_map.uid)


def _request(
    view: RunView, current: CurrentRun, settings: DecideSettings, bundle: Bundle, bundle_name: str
) -> RunRequest:
    return RunRequest(
        owner=view.owner,
        name=current.name,
        action=current.action,
        attempt=current.attempt,
        trigger=current.trigger,
        started_at=known_instant(current.started_at) or view.now,
        spark=merged_settings(view.settings.spark, settings.spark),
        bundle=bundle_name,
        report=report_name(current.name),
        secrets=secret_keys(bundle, current.action),
        allow_jdbc_url=settings.allow_jdbc_url,
        allow=settings.allow,
        log_format=settings.log_format,
        lineage=settings.lineage,
    )


def _reason(text: str) -> Reason:
    return Reason(text) if text in {reason.value for reason in Reason} else Reason.INVALID
