"""The state of outputs as pages of HTML: data without Spark, drawings, and files that need nothing.

`pagedata` is what a page shows, `outputpage` derives it, `document` renders it.
"""
