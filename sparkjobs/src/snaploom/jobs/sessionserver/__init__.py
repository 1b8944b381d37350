"""A server of sessions: keeps one JVM of Spark ready for the next command of the same user.

`snaploom session start` starts `server`, and `snaploom run` and its like ask it by `client`. A JVM
is prepared by `jobs.preparedjvm` for one `launch`, which is all that a command would start
a JVM of its own with. It serves one command, and ends with it, so that no command can meet what
another one left behind (decision 0078).
"""
