"""The watched kinds and their label selectors, which the API server applies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.models.run import Submitter
from snaploom_operator.cluster.apiresources import CONFIG_MAPS, NAMESPACES, OURS, PODS
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objects import LABEL_OWNER
from snaploom_operator.store.references import kind_key
from snaploom_operator.submitters.base import ApplicationForm

OF_RUNS = LABEL_OWNER
"""Selects objects with the label, of any value."""
DRIVERS = f"{LABEL_OWNER},spark-role=driver"


@dataclass(frozen=True)
class Watched:
    """One kind that is watched."""

    resource: ApiResource
    selector: str = ""
    submitter: Submitter | None = None
    """The submitter of these applications, whose kind is optional."""

    @property
    def key(self) -> str:
        """The kind in keys."""
        return kind_key(self.resource.group, self.resource.kind)


DECLARATIONS = tuple(Watched(resource) for resource in OURS.values())
"""The kinds of declarations, in the order of dependence: all that the webhook watches."""


def watched_kinds(forms: Iterable[ApplicationForm], *, is_namespaced: bool) -> tuple[Watched, ...]:
    """Every kind to watch, declarations first, in the order of dependence.

    Args:
        forms: the application forms of the usable submitters.
        is_namespaced: whether there are permissions in single namespaces only. Namespaces
            themselves are not watched then: a terminating one is noticed by a refused write.
    """
    applications = (
        Watched(form.resource, OF_RUNS, form.submitter)
        for form in forms
        if form.resource != CONFIG_MAPS
    )
    return (
        *(() if is_namespaced else (Watched(NAMESPACES),)),
        *DECLARATIONS,
        Watched(CONFIG_MAPS, OF_RUNS),
        *applications,
        Watched(PODS, DRIVERS),
    )
