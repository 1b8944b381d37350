"""Remedies of errors of the operator itself, as its log and its metrics name them."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy

_AGAIN = "Nothing: it is tried again, at growing intervals up to five minutes."

CLUSTER = {
    "OperatorFailed": Remedy(
        "The operator or one of its commands cannot go on.", "Do what the message says."
    ),
    "SettingsInvalid": Remedy(
        "The settings file has a key or a value that this version does not know.",
        "Take it out of the ConfigMap of the release; the chart writes only what its version "
        "knows, so that image and chart of two versions are the usual cause.",
        see="operating/upgrade.md",
    ),
    "ClusterFailed": Remedy("The API server answered with a failure without a name.", _AGAIN),
    "ObjectMissing": Remedy("An object went away between two looks.", _AGAIN),
    "ObjectExists": Remedy("An object was there already.", _AGAIN),
    "ObjectChanged": Remedy("Somebody else wrote the object at the same time.", _AGAIN),
    "ObjectRefused": Remedy(
        "A quota is used up, a policy engine or another webhook refuses the object, or the CRDs "
        "are of another version than the operator.",
        "The message has the words of whoever refused it. Raise the quota, let the policy pass "
        "what Snaploom creates, or upgrade the CRDs. It is tried again by itself.",
        see="operating/multi-tenancy.md",
    ),
    "NamespaceTerminating": Remedy(
        "The namespace is being deleted.", "Nothing: its resources go with it."
    ),
    "NotAllowed": Remedy(
        "A role of the release was changed or not installed, or `rbac.create` is false and the "
        "roles of your own lack a rule.",
        "The message names verb and resource. `helm test` tells what is missing, and "
        "`helm upgrade` puts it back.",
        see="operating/permissions.md",
    ),
    "ResourceUnknown": Remedy(
        "CRDs of Snaploom or of the Spark operator are not installed.",
        "Install them: `crds.enabled` of the chart, or `snaploom crds`.",
        see="how-to/install.md",
    ),
    "WatchExpired": Remedy("The API server has forgotten the changes since then.", _AGAIN),
    "TooManyRequests": Remedy(
        "The API server is overloaded, or its priority and fairness limits the operator.",
        "It waits as long as it is told. If it goes on, lower `operator.workers`.",
    ),
    "ApiUnavailable": Remedy(
        "The API server or the network to it is away, or a NetworkPolicy keeps the operator "
        "from it.",
        "Runs go on meanwhile, and nothing is lost. Otherwise look at the network.",
        see="operating/network.md",
    ),
    "TooManyReviews": Remedy(
        "Somebody in one namespace sends more declarations at a time than the webhook judges for "
        "one namespace; others are not held up.",
        "Send them one after the other; clients that apply folders do so by themselves.",
        see="how-to/admission.md",
    ),
    "SqlNotJudged": Remedy(
        "The operator cannot start the processes that judge SQL: its pod has too little memory, or "
        "too few processes are allowed in it. Or it is stopping.",
        "It tries again. If it goes on, raise `operator.resources.limits.memory`.",
        see="operating/troubleshooting.md",
    ),
    "ReviewUnreadable": Remedy(
        "Something other than the API server spoke to the webhook, or an object is larger than "
        "any API server takes.",
        "Nothing; a NetworkPolicy keeps others from the webhook.",
        see="operating/network.md",
    ),
}
"""By reason; those that a condition can have too stand with the conditions."""
