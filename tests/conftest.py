"""Property tests draw the same examples in every run; files that compute the same things share a worker."""

import gc
import re

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
gc.set_threshold(50_000)  # simulations make many objects and no cycles

# Tests of the page, of what sources print, of fleets, and of the fit: each worker computes once what all files of a
# group need, and the long files of fleets begin before many short ones, so that no worker ends alone.
TOGETHER = (
    "calculator_page|check|explorer|question|words",
    "agreement|argument_checks|artefacts|equations|facts|grading|introduction|principles|print|replaced|synthesis",
    "decide|kernel_model|queueing|serving|workload",
)


def pytest_collection_finish():
    """Leave what was imported and collected out of every later search for garbage."""
    gc.freeze()


def pytest_xdist_make_scheduler(config, log):
    """Give a worker all files of a group."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            groups = (group for group in TOGETHER if re.search(rf"/test_({group})\.py:", nodeid))
            return next(groups, super()._split_scope(nodeid))

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None
