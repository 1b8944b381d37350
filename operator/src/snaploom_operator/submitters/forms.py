"""All submitters, by name."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.run import Submitter
from snaploom_operator.submitters.apachespark import ApacheSparkForm
from snaploom_operator.submitters.base import ApplicationForm
from snaploom_operator.submitters.local import LocalForm
from snaploom_operator.submitters.sparkoperator import SparkOperatorForm

FORMS: Mapping[Submitter, ApplicationForm] = {
    form.submitter: form for form in (SparkOperatorForm(), ApacheSparkForm(), LocalForm())
}
"""The application form of each submitter."""
