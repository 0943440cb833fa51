"""Fill the cache that tests and chapters share before they start, each result in a process of its own.

So no result is computed by two tests at once, and a fresh process records every file that a result depends on.
"""

import argparse
import multiprocessing
import sys


def source(key):
    """What a source prints, recomputed: the longest are Erdil's frontiers."""
    from book.audit import grading

    grading.scorecard(key)
    grading.errata(key)
    grading.equations(key)
    return grading._made_in(key)


def page(_):
    """The calculator's page, with the answers of all sources."""
    from book.calculator import page

    page.page()
    return ["book.calculator.page"]


def grid(constants):
    """Everybody's answers to the questions of the synthesis."""
    from book.synthesis import grid
    from inferlib.papers import sources

    grid.whole_grid(constants)
    return ["book.synthesis.grid", *(f"inferlib.papers.{key}" for key in sources())]


def made(task):
    """Make one, and say what was read that it is not said to be made from."""
    function, what = task
    roots = function(what)
    from book import build_cache

    files = {file for file in build_cache.READ if (build_cache.ROOT / file).is_file()}
    missed = files - build_cache.closure(tuple(roots)) - set(build_cache.ALWAYS)
    return f"{what or function.__name__} is also made from {', '.join(sorted(missed))}" if missed else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    jobs = parser.parse_args().jobs
    import sympy  # noqa: F401  # of others' packages each process need not import its own
    import xarray  # noqa: F401

    from inferlib.papers import sources

    first = sorted(sources(), key=lambda key: key != "erdil2025")
    tasks = [*((source, key) for key in first), (page, ""), (grid, "own"), (grid, "same")]
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        faults = list(filter(None, pool.imap_unordered(made, tasks)))
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
