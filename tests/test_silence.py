"""A source gives a reason, and no guess, for a question that it does not describe or that does not fit."""

import pytest
from facts import lines, options_of

from inferlib import System, load_chip
from tokenprice import ask

ALONE = System(load_chip("TPU v4"), 8, domain=1)


@pytest.mark.parametrize(("source", "model", "machine", "options", "status", "reason"), lines("silences"))
def test_a_source_that_has_no_time_has_a_reason(source, model, machine, options, status, reason):
    """LIMINAL's 1,479 GB are 137 GB and 320 KiB for each of four million tokens; 300 sequences fit once, not twice."""
    machine = ALONE if machine == "alone" else machine
    found = ask(model, machine, by=source, **{"batch": 32, "context": 4096} | options_of(options))
    assert found.status == status and reason in found.reason
