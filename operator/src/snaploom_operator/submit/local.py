"""The operator itself as submitter, for laptops (rule R10): a run is a ConfigMap.

It is handled like every other application: created once, listed, watched, and deleted to stop it.
The runner (`submit/localrunner.py`) writes its state into the same ConfigMap.
"""

from snaploom_operator import objects

ROLE = "application"
SELECTOR = f"{objects.LABEL_ROLE}={ROLE}"
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
FINALIZER = "snaploom.io/local-process"
"""Set from the start of the process until its end: deleting a run stops it, and the ConfigMap
exists until nothing of it can publish any more."""
PROCESS = "process"
"""Key of the process: its PID and start time, since PIDs are reused."""
OPERATOR = "operator"
"""Key of the operator's own process, in the same form."""
