"""Remedies by reason, for every error that Snaploom raises on purpose.

`status.lastRun.reason` and the `found` of `SL192` are such reasons. They stand beside the models,
since classes of errors are spread over the layers and reasons are what a status keeps of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.remedies.indexes import INDEXES
from snaploom.models.remedies.publication import PUBLICATION
from snaploom.models.remedies.remedy import Remedy
from snaploom.models.remedies.runs import RUNS
from snaploom.models.remedies.sources import SOURCES
from snaploom.models.remedies.storage import STORAGE

REMEDY_BY_REASON: Mapping[str, Remedy] = {
    **RUNS,
    **SOURCES,
    **PUBLICATION,
    **STORAGE,
    **INDEXES,
}
