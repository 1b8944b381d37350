"""The kinds that the operator uses, as in API paths."""

from __future__ import annotations

from snaploom.models.common import API_VERSION, GROUP
from snaploom.models.kinds import KINDS
from snaploom_operator.cluster.port import ApiResource

OURS = {
    kind.name: ApiResource(GROUP, API_VERSION.rpartition("/")[2], kind.plural, kind.name)
    for kind in KINDS
}
"""Our six kinds by name."""

OPENAPI = ApiResource("", "v3", "openapi", "OpenAPI")
"""The description of our kinds: no resource, and at a path of its own."""
CONFIG_MAPS = ApiResource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = ApiResource("", "v1", "namespaces", "Namespace")
PODS = ApiResource("", "v1", "pods", "Pod")
SECRETS = ApiResource("", "v1", "secrets", "Secret")
"""The only Secret that is read is the webhook's certificate."""
EVENTS = ApiResource("events.k8s.io", "v1", "events", "Event")
LEASES = ApiResource("coordination.k8s.io", "v1", "leases", "Lease")
VALIDATING_WEBHOOKS = ApiResource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
)
SPARK_APPLICATIONS = ApiResource(
    "sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication"
)
"""Of the Kubeflow Spark operator."""
APACHE_SPARK_APPLICATIONS = ApiResource(
    "spark.apache.org", "v1", "sparkapplications", "SparkApplication"
)
"""Of the Apache Spark Kubernetes operator."""
TOKEN_REVIEWS = ApiResource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
"""A question to the API server, which stores nothing: whose token it is."""
ACCESS_REVIEWS = ApiResource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"
)
"""A question to the API server, which stores nothing: whether a user has a right."""
