import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import data_types, resources, time_offsets
from support.runner.quick import examples

from snaploom.models.common import DataType, TimeOffset
from snaploom.models.kinds import KINDS

few = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@few
@given(st.data(), st.sampled_from(KINDS))
def test_every_drawn_resource_is_accepted_and_survives_a_round_trip(data, kind):
    raw = data.draw(resources(kind.model))
    parsed = kind.model.parse(raw)
    dumped = parsed.dump()
    assert parsed.kind == kind.name
    assert kind.model.parse(dumped).dump() == dumped


@few
@given(data_types(), time_offsets())
def test_fragments_survive_a_round_trip(data_type, offset):
    assert DataType.parse(data_type.dump()) == data_type
    assert TimeOffset.parse(offset.dump()) == offset
