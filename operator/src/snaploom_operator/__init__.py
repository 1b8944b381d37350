"""The Kubernetes operator: reconciles Snaploom resources and submits their runs.

It uses the models, loading, planning and storage of `snaploom`; the Spark jobs are not here.
"""
