"""Whole JDBC URLs, and the administrator's permission for them.

A URL is written by the author of the source, kept in the cluster as it is, and repeated by drivers
in messages; so that user and password never stand in it, whatever its form
(`snaploom.planning.secretdetection.names_a_login`). The rest is left to those who
allow URLs.
"""

from __future__ import annotations

ALLOW_URL_VARIABLE = "SNAPLOOM_ALLOW_JDBC_URL"
"""Environment variable of a process that reads databases; `true` allows URLs."""
