"""What went wrong in Spark, in one line."""

from snaploom.skipping.spark.relations.janino import cause_of

WORKER = """
  An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 598, in read_single_udf
    f, return_type = read_command(pickleSer, udf)
                     ^^^^^^^^^^^^
ModuleNotFoundError: No module named 'snaploom'
"""


def test_an_error_in_a_worker_is_what_the_worker_raised() -> None:
    raised = "a Python worker of Spark raised ModuleNotFoundError: No module named 'snaploom'"
    assert cause_of(RuntimeError(WORKER)) == raised


def test_other_errors_are_their_first_line() -> None:
    assert cause_of(RuntimeError("\n  no such file\n\tat a.B")) == "no such file"
    assert cause_of(RuntimeError("")) == "RuntimeError"
