"""What a door refuses: a table of calls is a test."""

import pytest


def refused(*calls):
    """The test that each call is refused: what is called, the kind of error, and the words of its message."""

    @pytest.mark.parametrize(("call", "error", "message"), calls)
    def test(call, error, message):
        with pytest.raises(error, match=message):
            call()

    return test
