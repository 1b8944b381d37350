"""Settings of a session that control skipping.

They are read with each request, so that `spark.conf.set` has effect with the next query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snaploom.skipping.formats.keyservices import SETTING as KEY_SERVICE
from snaploom.skipping.spark.relations import fingerprint

ENABLED = "spark.snaploom.skipping.enabled"
"""`false`: queries read every file, as if nothing was installed."""
EVALUATE_ONLY = "spark.snaploom.skipping.evaluateOnly"
"""`true`: what would be skipped is counted, and every file is read."""
LOCATIONS = "spark.snaploom.skipping.locations"
"""Folders below which indexes are, separated by commas, beside those given to `enable`."""
FLINT_ENABLED = "spark.flint.optimizer.enabled"
"""Flint's name of the same switch (seed); `false` switches skipping off, too."""
USAGE = "spark.snaploom.skipping.usage"
"""`false`: usage of indexes by queries is not recorded beside the indexes."""
TRACE = "spark.snaploom.skipping.trace"
"""Names the `explain` for whose sake a query is planned; nobody else sets it."""

REQUESTED: tuple[str, ...] = (
    *fingerprint.REQUESTED,
    ENABLED,
    EVALUATE_ONLY,
    LOCATIONS,
    FLINT_ENABLED,
    KEY_SERVICE,
    USAGE,
    TRACE,
)
"""Settings that the optimizer rule sends along with each request."""


@dataclass(frozen=True)
class SkippingSettings:
    """Settings of a session."""

    is_enabled: bool = True
    switched_off_by: str = ""
    """The setting that is `false`; empty while skipping is enabled."""
    is_evaluated_only: bool = False
    locations: tuple[str, ...] = ()
    key_service: str = ""
    """URL of the keys of encrypted indexes, for locations without keys of their own."""
    is_usage_recorded: bool = True
    trace: str = ""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> SkippingSettings:
        """Parse the settings of a request; null stands for the default."""
        off = [name for name in (ENABLED, FLINT_ENABLED) if _text(values, name) == "false"]
        return cls(
            is_enabled=not off,
            switched_off_by="".join(off[:1]),
            is_evaluated_only=_text(values, EVALUATE_ONLY) == "true",
            locations=locations_in(values.get(LOCATIONS)),
            key_service=str(values.get(KEY_SERVICE) or "").strip(),
            is_usage_recorded=_text(values, USAGE) != "false",
            trace=str(values.get(TRACE) or ""),
        )


def locations_in(value: object) -> tuple[str, ...]:
    """Locations in the value of `spark.snaploom.skipping.locations`."""
    parts = (part.strip() for part in str(value or "").split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def _text(values: Mapping[str, object], name: str) -> str:
    return str(values.get(name) or "").strip().lower()
