"""Pages against the length of history, in a real Chromium: `make bench-page`.

For histories of 100 and 10,000 hourly snapshots with three joins: seconds of the processor to write
the page from the manifest, its weight as it is and compressed, milliseconds to the first paint and
until the script has drawn its table (the least of seven: what else the machine does only adds), and
the memory of the page's script.
"""

import gzip
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from figures import Figure, publish
from support.site.chromium import Browser, chromium
from support.site.histories import HOURLY, declarations, write_history

from snaploom.models.common import EpochNanos
from snaploom.plugins.site.document import INDEX, site_of, write_site
from snaploom.plugins.site.pages import Clock, declared_pages
from snaploom.run.declarations import read_declarations

LENGTHS = (100, 10_000)
REPEATS = 7
MIB = 2**20
PAINT = """
new Promise((done) => new PerformanceObserver((list) => {
  const found = list.getEntries().find((entry) => entry.name === "first-contentful-paint");
  if (found) done(found.startTime);
}).observe({ type: "paint", buffered: true }))
"""
LOADED = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def main() -> None:
    """Measure both lengths and write the table."""
    with chromium() as browser:
        figures = [figure for length in LENGTHS for figure in measure(browser, length)]
    publish("Pages", "make bench-page", figures)


def measure(browser: Browser, length: int) -> Iterator[Figure]:
    """Figures of one length."""
    with tempfile.TemporaryDirectory(prefix="snaploom-bench-") as place:
        folder = Path(place)
        write_history(folder / "out", length, HOURLY)
        declarations(folder, folder / "out")
        seconds = statistics.median(write(folder, HOURLY.step * length) for _ in range(REPEATS))
        name = f"{length:,} snapshots"
        yield Figure.at_most(
            f"{name}, page written, processor seconds", seconds, 1.0 if length < 1000 else 5
        )
        page = folder / "site" / INDEX
        weight = page.read_bytes()
        yield Figure.at_most(f"{name}, weight, MiB", len(weight) / MIB, 1.0)
        yield Figure.at_most(f"{name}, compressed, MiB", len(gzip.compress(weight)) / MIB, 0.25)
        paints, loads, heap = zip(*(seen(browser, page) for _ in range(REPEATS)), strict=True)
        yield Figure.at_most(f"{name}, first paint, ms", min(paints), 500)
        yield Figure.at_most(f"{name}, table drawn, ms", min(loads), 1000)
        yield Figure.at_most(f"{name}, memory of the script, MiB", max(heap) / MIB, 32)


def write(folder: Path, age: int) -> float:
    """Seconds of the processor from declarations and manifest to the file."""
    started = process_time()
    clock = Clock(EpochNanos(1_704_067_200 * 10**9 + age), is_present=False)
    pages = declared_pages(read_declarations([folder]), ["orders-wide"], clock)
    write_site(folder / "site", site_of(pages, clock.now))
    return process_time() - started


def seen(browser: Browser, file: Path) -> tuple[float, float, float]:
    """Milliseconds to the first paint and to the table, and bytes that the script holds."""
    with browser.page(file.as_uri()) as page:
        page.call("Page.bringToFront")
        return page.value(PAINT), page.value(LOADED), page.call("Runtime.getHeapUsage")["usedSize"]


if __name__ == "__main__":
    main()
