"""Remedies of the operator's own errors, by the reason in logs and metrics."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy

_AGAIN = "Nothing: it is retried, at growing intervals up to five minutes."

CLUSTER = {
    "OperatorFailed": Remedy(
        "The operator or one of its commands cannot continue.",
        "Look up the reason of the case on this page; this one stands for all of them.",
    ),
    "SettingsInvalid": Remedy(
        "The settings file has a key or a value that this version does not know.",
        "Remove it from the ConfigMap of the release; the chart writes only keys of its own "
        "version, so that different versions of image and chart are the usual cause.",
        see="operating/upgrade.md",
    ),
    "ClusterFailed": Remedy("The API server answered with a failure without a name.", _AGAIN),
    "ObjectMissing": Remedy("An object was deleted between two requests.", _AGAIN),
    "ObjectExists": Remedy("An object already exists.", _AGAIN),
    "ObjectChanged": Remedy("Another client wrote the object at the same time.", _AGAIN),
    "ObjectRefused": Remedy(
        "A quota is used up, a policy engine or another webhook refuses the object, or the CRDs "
        "are of another version than the operator.",
        "The message has the reason of the refusal. Raise the quota, allow in the policy what "
        "Snaploom creates, or upgrade the CRDs. It is retried automatically.",
        see="operating/multi-tenancy.md",
    ),
    "NamespaceTerminating": Remedy(
        "The namespace is being deleted.", "Nothing: its resources are deleted with it."
    ),
    "NotAllowed": Remedy(
        "A role of the release was changed or not installed, or `rbac.create` is false and the "
        "roles of your own lack a rule.",
        "The message names verb and resource. `helm test` shows what is missing, and "
        "`helm upgrade` restores it.",
        see="operating/permissions.md",
    ),
    "ResourceUnknown": Remedy(
        "CRDs of Snaploom or of the Spark operator are not installed.",
        "Install them: `crds.enabled` of the chart, or `snaploom crds`.",
        see="how-to/install.md",
    ),
    "WatchExpired": Remedy("The resourceVersion is too old for the API server.", _AGAIN),
    "NotAuthenticated": Remedy(
        "Somebody asks for a page of a cluster without a token, or with one that has ended; or the "
        "proxy before the pages passes its own.",
        "Let the proxy pass the user's token on, as `Authorization: Bearer TOKEN`.",
        see="how-to/pages-in-a-cluster.md",
    ),
    "TooManyRequests": Remedy(
        "The API server is overloaded, or its priority and fairness limits the operator.",
        "It waits as long as the API server asks. If this continues, lower `operator.workers`.",
    ),
    "ApiUnavailable": Remedy(
        "The API server or the network to it is down, or a NetworkPolicy blocks the operator.",
        "Runs continue, and nothing is lost. If it persists, check the network.",
        see="operating/network.md",
    ),
    "TooManyReviews": Remedy(
        "A client sends more declarations of one namespace at a time than the webhook reviews for "
        "one namespace; others are not delayed.",
        "Send them one after the other, as clients that apply folders do.",
        see="how-to/admission.md",
    ),
    "TextNotJudged": Remedy(
        "The operator cannot start the processes that analyse texts: its pod has too little memory "
        "or a low limit of processes. Or it is stopping.",
        "It is retried. If it persists, raise `operator.resources.limits.memory`.",
        see="operating/troubleshooting.md",
    ),
    "ReviewUnreadable": Remedy(
        "A client other than the API server called the webhook, or an object is larger than any "
        "API server accepts.",
        "Nothing; a NetworkPolicy can restrict access to the webhook.",
        see="operating/network.md",
    ),
}
"""By reason; those that conditions have too are in `conditionremedies`."""
