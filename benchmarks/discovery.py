"""How well `snaploom init --from` finds relationships, over data sets whose truth is known.

The examples (flights, TPC-H, customers) are judged beside data sets that are made for it, each with
other names, layouts and formats (`tests/support/discovery`).
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from figures import Figure, print_figures, publish
from knownshapes import KNOWN_SHAPES
from publicmodels import PUBLIC_MODELS
from support.discovery.datasetfiles import DataSet, Link, links
from support.discovery.datasets import DATA_SETS
from support.discovery.messy import MESSY_SETS
from support.discovery.quality import judged

from snaploom.plugins.discovery.discover import discover

EXAMPLES = Path(__file__).parent.parent / "examples"
COMMAND = "make bench-discovery"
RECALL, PRECISION = 0.95, 0.9
FLIGHTS = links(
    "flights.carrier > airlines.carrier",
    "flights.tailnum > planes.tailnum",
    "flights.origin > airports.faa",
    "flights.dest > airports.faa",
    "flights.origin+time_hour > weather.origin+time_hour",
)
TPCH = links(
    "lineitem.l_orderkey > orders.o_orderkey",
    "lineitem.l_partkey > part.p_partkey",
    "lineitem.l_suppkey > supplier.s_suppkey",
    "lineitem.l_partkey+l_suppkey > partsupp.ps_partkey+ps_suppkey",
    "partsupp.ps_partkey > part.p_partkey",
    "partsupp.ps_suppkey > supplier.s_suppkey",
    "orders.o_custkey > customer.c_custkey",
    "customer.c_nationkey > nation.n_nationkey",
    "supplier.s_nationkey > nation.n_nationkey",
    "nation.n_regionkey > region.r_regionkey",
)
CUSTOMER = links(
    "customer_address.customer_id > customer.customer_id",
    "customer_contact.customer_id > customer.customer_id",
    "customer_group.customer_id > customer.customer_id",
    "customer_group.group_id > group_attributes.group_id",
)


def example(
    name: str, truth: frozenset[Link], also_right: frozenset[Link] = frozenset()
) -> DataSet:
    """An example, which writes its data by a program of its own."""
    return DataSet(name, (), truth, also_right)


EXAMPLE_SETS = (
    example("flights", FLIGHTS, links("weather.origin > airports.faa")),
    example("tpch", TPCH),
    example("customer", CUSTOMER),
)


def write(data: DataSet, folder: Path) -> None:
    """Write a data set's files."""
    if data.tables:
        data.write(folder)
        return
    program = EXAMPLES / data.name / "data.py"
    subprocess.run([sys.executable, program, "--to", folder], check=True, stdout=subprocess.DEVNULL)


def figures_of(sets: Iterable[DataSet]) -> list[Figure]:
    """Recall and precision of each data set and of all, and what it took."""
    figures = []
    right = missed = wrong = read = 0
    seconds = 0.0
    for data in sets:
        with TemporaryDirectory() as folder:
            write(data, Path(folder))
            started = perf_counter()
            found = discover([folder], "file:///model/")
            took = perf_counter() - started
        result = judged(data, found)
        right, missed = right + len(result.right), missed + len(result.missed)
        wrong, read, seconds = wrong + len(result.wrong), read + found.bytes_read, seconds + took
        about = f"{len(result.right)} of {len(data.truth)} found, {len(result.wrong)} wrong"
        figures.append(
            Figure(f"init, {data.name}", f"{about}, {took:.1f} s, {found.bytes_read:,} bytes")
        )
        for one in sorted(result.missed):
            print(f"missed: {data.name} {one}")
        for one in sorted(result.wrong):
            print(f"wrong: {data.name} {one}")
    recall, precision = right / max(1, right + missed), right / max(1, right + wrong)
    return [
        *figures,
        at_least("init, recall of relationships", recall, RECALL),
        at_least("init, precision of relationships", precision, PRECISION),
        Figure("init, seconds of all data sets", round(seconds, 1)),
        Figure("init, bytes read of all data sets", read),
    ]


def at_least(name: str, value: float, limit: float) -> Figure:
    """A share that must not be smaller than a limit."""
    return Figure(name, round(value, 3), f">= {limit:g}", value >= limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="two data sets, nothing written")
    makers: tuple[Callable[[], DataSet], ...] = (
        *DATA_SETS,
        *PUBLIC_MODELS,
        *MESSY_SETS,
        *KNOWN_SHAPES,
    )
    if parser.parse_args().small:
        print_figures(figures_of(make() for make in makers[:2]))
        return
    sets = [*EXAMPLE_SETS, *(make() for make in makers)]
    figures = figures_of(sets)
    publish("Start from files", COMMAND, figures)
    sys.exit(not all(figure.ok for figure in figures))


if __name__ == "__main__":
    main()
