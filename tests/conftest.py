"""Property tests draw the same examples in every run; files that compute the same things share a worker."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Tests of the page, and tests of what sources print, of which each worker keeps what it has computed.
TOGETHER = (
    "calculator_page check explorer question words",
    "agreement artefacts equations grading introduction principles replaced synthesis "
    "erdil2025_model erdil2025_text erdil2025_toy liminal2025 mazurek2025 pope2022 print steinhardt2022",
)


def pytest_xdist_make_scheduler(config, log):
    """Give a worker all files of a group."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            name = file.removeprefix("tests/test_").removesuffix(".py")
            return next((group for group in TOGETHER if name in group.split()), file)

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None
