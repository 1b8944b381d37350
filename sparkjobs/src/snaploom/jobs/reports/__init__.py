"""Reports of runs: log lines while a run works, and its Report, in a file or a ConfigMap.

The model of a Report is in `models`; what a run does is in `jobs.weaving`.
"""
