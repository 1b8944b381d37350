"""Jobs on published snapshots: compare, check, estimate, sort, delete.

Not here: publishing them (`jobs.weaving`) and the manifest (`storage`).
"""
