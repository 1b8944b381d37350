"""Judging texts of users that are dear to analyse: SQL, and regular expressions.

`texts` judges them at once; `worker` is a process that does it for others, one line in and one line
out (`wire`), so that whoever waits for a verdict can end it.
"""
