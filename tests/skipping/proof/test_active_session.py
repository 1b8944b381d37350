from pyspark.sql import SparkSession
from support.skipping.proofcases import ProofCase


def test_building_a_partial_index_does_not_change_the_active_session(case: ProofCase) -> None:
    case.write({"a": [1]}, {"a": [2]}, {"a": [3]})
    chosen = "_metadata.file_path LIKE '%f0%' OR _metadata.file_path LIKE '%f1%'"
    active = SparkSession.active()._jsparkSession
    case.index(lambda builder: builder.add_min_max("a").filter_by(chosen))
    assert SparkSession.active()._jsparkSession.equals(active)
    assert case.kept("a = 2") == 2
