"""The operator itself as submitter, for laptops (rule R10): a run is a ConfigMap.

It is handled like every other application: created once, listed, watched, and deleted to stop it.
The runner (`submit/localrunner.py`) writes its state into the same ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import CONFIG_MAPS, ApiResource
from snaploom_operator.objects import (
    LABEL_ROLE,
    Application,
    ApplicationState,
    JsonObject,
    Metadata,
    mapping_in,
    text_in,
)
from snaploom_operator.submit.applications import (
    RunRequest,
    application_object,
    known_state,
    read_application,
)
from snaploom_operator.submit.configmaps import report_name

ROLE = "application"
SELECTOR = f"{LABEL_ROLE}={ROLE}"
"""Label selector of local runs."""
BUNDLE = "bundle"
"""Key of the name of the ConfigMap with the Bundle."""
REPORT = "report"
"""Key of the name of the ConfigMap for the Report."""
STATE = "state"
MESSAGE = "message"
STARTED_AT = "startedAt"
FINISHED_AT = "finishedAt"
HOST = "host"
"""Key of the machine that runs it."""
FINALIZER = "snaploom.io/local-process"
"""Set from the start of the process until its end: deleting a run stops it, and the ConfigMap
exists until nothing of it can publish any more."""
PROCESS = "process"
"""Key of the process: its PID and start time, since PIDs are reused."""
OPERATOR = "operator"
"""Key of the operator's own process, in the same form."""

_STATES: Mapping[str, ApplicationState] = {state.value: state for state in ApplicationState}


@dataclass(frozen=True)
class LocalForm:
    """Builds and parses the ConfigMaps of local runs."""

    submitter: Submitter = Submitter.LOCAL
    resource: ApiResource = CONFIG_MAPS

    def manifest(self, request: RunRequest) -> JsonObject:
        """The ConfigMap of a run; Spark's settings are in the Bundle."""
        data: JsonValue = {
            BUNDLE: request.bundle,
            REPORT: report_name(request.run.name),
            STATE: ApplicationState.NEW.value,
        }
        return application_object(self.resource, request, {"data": data}, ROLE)

    def read(self, stored: JsonObject) -> Application | None:
        """The run of a ConfigMap; None if it is not a local run."""
        if Metadata.of(stored).labels.get(LABEL_ROLE) != ROLE:
            return None
        data = mapping_in(stored, "data")
        state, message = known_state(text_in(data, STATE), _STATES, text_in(data, MESSAGE))
        return read_application(stored, self.submitter, state, message)
