"""The matrix of values really has every pair of choices."""

from itertools import combinations, product

import pytest
from support.cluster.chart import pairwise


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3, 4), (2,) * 12, (3, 3, 2, 2, 2)])
def test_every_pair_of_choices_occurs(sizes: tuple[int, ...]) -> None:
    choices = {f"choice {i}": range(size) for i, size in enumerate(sizes)}
    found = pairwise(choices)
    for one, other in combinations(choices, 2):
        assert {(each[one], each[other]) for each in found} == set(
            product(choices[one], choices[other])
        )
    assert len(found) <= 3 * max(sizes) ** 2
