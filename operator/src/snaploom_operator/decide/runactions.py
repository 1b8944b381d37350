"""Actions that create and delete the objects of a run."""

from __future__ import annotations

from snaploom.errors import SnaploomError
from snaploom.models.run import CurrentRun, RunAction
from snaploom.planning.secretvariables import secret_keys
from snaploom_operator.actions import Create, Delete
from snaploom_operator.cluster.apiresources import CONFIG_MAPS
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.faults import Fault
from snaploom_operator.decide.runview import RunView
from snaploom_operator.instants import known_instant
from snaploom_operator.manifests.configmaps import bundle_config_map
from snaploom_operator.objectmetadata import Metadata
from snaploom_operator.objects import Application
from snaploom_operator.observed import OwnedConfigMap
from snaploom_operator.submitters.base import RunRequest
from snaploom_operator.submitters.forms import FORMS
from snaploom_operator.submitters.settingsmerge import merged_settings


def creations(view: RunView, current: CurrentRun) -> tuple[Create, Create] | Fault:
    """Create the Bundle's ConfigMap, then the application; a fault if that is impossible."""
    bundle = view.bundle if current.action is RunAction.RUN else view.job_bundle
    if bundle is None:
        return Fault(Reason.INTERNAL_ERROR, "the declarations of the run are unknown")
    form, operator = FORMS[view.submitter], view.defaults.operator
    try:
        bundled = bundle_config_map(view.owner, current.name, bundle)
        request = RunRequest(
            owner=view.owner,
            run=current,
            started_at=known_instant(current.started_at) or view.now,
            spark=merged_settings(view.settings.spark, operator.spark),
            bundle=Metadata.of(bundled).name,
            settings=operator,
            secrets=secret_keys(bundle, current.action),
        )
        application = form.manifest(request)
    except SnaploomError as error:
        is_known = error.reason in {reason.value for reason in Reason}
        return Fault(Reason(error.reason) if is_known else Reason.INVALID, str(error))
    return Create(CONFIG_MAPS, bundled), Create(form.resource, application)


def deletion(view: RunView, application: Application) -> Delete:
    """The action that deletes an application."""
    resource = FORMS[application.submitter].resource
    return Delete(resource, view.namespace, application.name, application.uid)


def config_map_deletion(config_map: OwnedConfigMap, namespace: str) -> Delete:
    """The action that deletes a ConfigMap of ours."""
    return Delete(CONFIG_MAPS, namespace, config_map.name, config_map.uid)
