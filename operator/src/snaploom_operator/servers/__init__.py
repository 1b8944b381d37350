"""What every server of the operator's processes uses: HTTP, certificates, probes and metrics.

Who answers what is in `admission`, `pages` and `process`.
"""
