"""Environment variables that configure reports of a job; the submitter sets most of them."""

from __future__ import annotations

DEBUG_VARIABLE = "SNAPLOOM_DEBUG"
"""Shows Spark's log, and where an internal error happened."""
LOG_FORMAT_VARIABLE = "SNAPLOOM_LOG_FORMAT"
"""Form of a job's lines: `json`, one object a line, or `text`, the form without it."""
URL_VARIABLE = "SNAPLOOM_LINEAGE_URL"
"""Where lineage events go: the address of a server, or `file:///PATH`; none are emitted without."""
KEY_VARIABLE = "SNAPLOOM_LINEAGE_API_KEY"
"""The key that the server wants, if it wants one."""
NAMESPACE_VARIABLE = "SNAPLOOM_LINEAGE_NAMESPACE"
"""The namespace of our jobs there."""
