"""HTTP servers of the operator's processes: probes, metrics, and pages of outputs.

Pages show what the operator wrote into statuses, to those who may read it.
"""
