"""The operator itself as submitter, for laptops (ruling D45): a run is a ConfigMap.

It is treated like every other application: created once, listed, watched, and deleted to stop it.
Whoever runs it (`local/runner.py`) writes what becomes of it into the same ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.cluster.resources import CONFIG_MAPS
from snaploom_operator.metadata import Metadata, mapping_in, text_in
from snaploom_operator.objects import LABEL_ROLE, Application, ApplicationState, JsonObject
from snaploom_operator.submitters.applications import (
    application_metadata,
    known_state,
    read_application,
)
from snaploom_operator.submitters.base import RunRequest

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
PROCESS = "process"
"""Key of the process: its number, and when it started, since numbers come again."""
OPERATOR = "operator"
"""Key of the operator's own process, in the same form."""

_STATES: Mapping[str, ApplicationState] = {state.value: state for state in ApplicationState}


@dataclass(frozen=True)
class LocalForm:
    """How runs are written for the operator's own machine, and how they are read back."""

    submitter: Submitter = Submitter.LOCAL
    resource: ApiResource = CONFIG_MAPS

    def manifest(self, request: RunRequest) -> JsonObject:
        """The ConfigMap of a run; Spark's settings stand in the Bundle."""
        data: dict[str, JsonValue] = {
            BUNDLE: request.bundle,
            REPORT: request.report,
            STATE: ApplicationState.NEW.value,
        }
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": application_metadata(request, ROLE),
            "data": data,
        }

    def read(self, stored: JsonObject) -> Application | None:
        """The run behind a ConfigMap; None when it is none."""
        if Metadata.of(stored).labels.get(LABEL_ROLE) != ROLE:
            return None
        data = mapping_in(stored, "data")
        state, message = known_state(text_in(data, STATE), _STATES, text_in(data, MESSAGE))
        return read_application(stored, self.submitter, state, message)
