"""The input of a job: declarations in files, or the Bundle from the operator.

Parsing is in `loading`, validation in `planning`.
"""
