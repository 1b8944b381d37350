"""Which kinds are watched, and which of their objects: selecting is the API server's work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.cluster.resources import CONFIG_MAPS, NAMESPACES, OURS, PODS
from snaploom_operator.knowledge.references import kind_key
from snaploom_operator.objects import LABEL_OWNER
from snaploom_operator.submitters.base import ApplicationForm

OF_RUNS = LABEL_OWNER
"""Selects what carries the label, whatever its value."""
DRIVERS = f"{LABEL_OWNER},spark-role=driver"


@dataclass(frozen=True)
class Watched:
    """One kind that is watched."""

    resource: ApiResource
    selector: str = ""
    submitter: Submitter | None = None
    """Whose applications these are; the cluster can do without them."""

    @property
    def key(self) -> str:
        """How the kind stands in keys."""
        return kind_key(self.resource.group, self.resource.kind)


def watched_kinds(forms: Iterable[ApplicationForm], *, is_namespaced: bool) -> tuple[Watched, ...]:
    """Every kind to watch, declarations first, in the order of dependence.

    Args:
        forms: how the submitters that may be used write applications.
        is_namespaced: whether there are rights in single namespaces only. Namespaces themselves
            are then not watched: whoever may not list them learns from a refused write that one
            is going.
    """
    applications = (
        Watched(form.resource, OF_RUNS, form.submitter)
        for form in forms
        if form.resource != CONFIG_MAPS
    )
    return (
        *(() if is_namespaced else (Watched(NAMESPACES),)),
        *(Watched(resource) for resource in OURS.values()),
        Watched(CONFIG_MAPS, OF_RUNS),
        *applications,
        Watched(PODS, DRIVERS),
    )
