"""`kubectl get` in a terminal of 80 columns."""

import json
import re

import pytest
from support.declared.declarations import document
from support.documentation.examples import REPOSITORY

from snaploom.models.kinds import KINDS

FLIGHTS = REPOSITORY / "examples" / "flights"
WIDTH = 80
CONDITION = {
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-31T12:00:00Z",
    "message": "A sentence that describes the state to a person, and names what to do.",
}
RUN = {"id": "ods-flights-wide-0a1b2c3d", "startedAt": "2026-01-31T12:00:00Z"}
LATEST = {
    "time": "2026-01-31T00:00:00Z",
    "publishedAt": "2026-01-31T12:04:00Z",
    "partition": "snapshot_epoch=1769817600000",
    "rows": 336776,
    "files": 4,
    "bytes": 9000000,
}


SELECTORS = [{"coordinateIncludeRegex": "a"}]
OTHERS = (
    document("MetadataApplicator", "units", {"fieldSelectors": SELECTORS, "metadata": {}}),
    document(
        "FieldTransformer", "lower-case", {"transformers": [{"drop": {}, "selectors": SELECTORS}]}
    ),
)


def status_of(kind, ready, reason):
    """A status as the operator writes it, with a Ready condition to choose."""
    condition = CONDITION | {"type": "Ready", "status": ready, "reason": reason}
    status = {"observedGeneration": 1, "conditions": [condition]}
    if kind == "DataSource":
        seen = {"run": RUN["id"], "at": "2026-01-31T12:00:00Z", "latestSnapshot": LATEST["time"]}
        return status | {"usedBy": {"count": 3}, "lastSeen": seen}
    if kind == "OutputDataset":
        last = RUN | {"phase": "Failed", "reason": "SourceNotReadable"}
        current = {"name": RUN["id"], "phase": "Running", "since": RUN["startedAt"]}
        return status | {
            "currentRun": RUN | current | {"progress": "snapshot 3 of 12, join 4 of 9"},
            "lastRun": last,
            "latestSnapshot": LATEST,
            "nextRunTime": "2026-02-01T03:00:00Z",
        }
    if kind == "SkippingIndex":
        return status | {"state": "refreshing", "files": {"indexed": 4, "stale": 1, "missing": 0}}
    return status | {"usedBy": {"count": 12}}


def set_status(kubectl, namespace, found, status):
    """Write a status when it is not there yet."""
    if found.get("status") == status:
        return
    found["status"] = status
    patch = json.dumps({"status": status})
    kind, name = found["kind"].lower(), found["metadata"]["name"]
    how = ("--namespace", namespace, "--type=merge", "--subresource=status", "--patch", patch)
    kubectl("patch", f"{kind}.snaploom.io", name, *how)


@pytest.fixture(scope="module")
def applied(control_plane):
    """A namespace with the example of the flights, and what was applied."""
    namespace = control_plane.create_namespace()
    kubectl = control_plane.kubectl
    kubectl("apply", "--server-side", "--namespace", namespace, "-f", str(FLIGHTS))
    kubectl.apply(*OTHERS, namespace=namespace)
    yield namespace, kubectl.list("snaploom", namespace)
    control_plane.delete_namespace(namespace)


STORIES = {
    "good": {"OutputDataset": ("True", "Published"), "SkippingIndex": ("True", "IndexActive")},
    "failed": {"OutputDataset": ("True", "LastRunFailed")},
    "ambiguous": {
        "OutputDataset": ("False", "TreeAmbiguous"),
        "SkippingIndex": ("False", "ReferenceNotReady"),
    },
    "missing": {
        "DataSource": ("False", "ReferenceMissing"),
        "OutputDataset": ("False", "ReferenceNotReady"),
    },
    "waiting": {
        "OutputDataset": ("Unknown", "RunSubmitted"),
        "SkippingIndex": ("Unknown", "NeverPublished"),
    },
    "suspended": {"OutputDataset": ("True", "Suspended")},
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_every_line_fits_into_a_terminal(kubectl, applied, story):
    namespace, objects = applied
    for found in objects:
        ready, reason = story.get(found["kind"], ("True", "Valid"))
        set_status(kubectl, namespace, found, status_of(found["kind"], ready, reason))
    lines = kubectl("get", "snaploom", "--namespace", namespace).splitlines()
    assert [line for line in lines if len(line.rstrip()) > WIDTH] == []
    assert sum(line.startswith("NAME") for line in lines) == len(KINDS)
    assert sum(" Valid " in line for line in lines) >= len(objects) - 11


def test_publication_is_an_age_and_under_wide_the_snapshot_a_time(kubectl, applied):
    namespace, objects = applied
    for found in objects:
        if found["kind"] == "OutputDataset":
            status = status_of("OutputDataset", "True", "Published")
            set_status(kubectl, namespace, found, status)
    title, line = kubectl("get", "ods", "--namespace", namespace).splitlines()
    assert title.split() == ["NAME", "READY", "REASON", "PUBLISHED"]
    assert re.fullmatch(r"flights-wide +True +Published +\d+d *", line)
    wide = kubectl("get", "ods", "--namespace", namespace, "--output", "wide")
    shown = (LATEST["time"], "336776", "Running", "snapshot 3 of 12, join 4 of 9")
    for each in (*shown, "Failed", "SourceNotReadable"):
        assert each in wide
    assert CONDITION["message"] in wide
