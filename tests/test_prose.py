"""Numbers of stored outputs are read as they are written, and those that no two CPUs agree on are found."""

from decimal import Decimal

import pytest
from nbformat import v4
from prose import long_numbers, numbers


def test_numbers_are_read_as_written():
    assert numbers("1,024 and 43{,}000, 1.5e-6; H100, x2.5, v1.2") == [
        ("1,024", Decimal(1024)),
        ("43,000", Decimal(43000)),
        ("1.5e-6", Decimal("1.5e-6")),
    ]


@pytest.mark.parametrize(
    ("data", "long"),
    [
        ({"text/plain": "0.13964655076104557"}, ["0.13964655076104557"]),
        ({"text/plain": "{'layer': 7.320432874755479e-05}"}, ["7.320432874755479e-05"]),
        ({"text/html": "<td data-x='1.2345678'>12,345.678 ms</td>"}, ["12,345.678"]),
        ({"text/csv": "x,y\n1,2.34567\n1,548.748\n3,-1.2345678"}, ["1.2345678"]),
        ({"text/latex": r"42.72727272727273\\ \mathrm{ms}"}, ["42.72727272727273"]),
        ({"text/plain": "0.139647, 70,552,387,584, 2.5e+12, 1.500000000 and 123456789.0"}, []),
        ({"text/markdown": "$$x \\leq 1.000000001$$ and $0.999999999\\, n$"}, []),
        ({"text/plain": "https://arxiv.org/abs/2412.19437 and arXiv 2201.11990"}, []),
    ],
)
def test_numbers_with_too_many_digits_are_found(data, long):
    output = v4.new_output("display_data", data=data)
    assert long_numbers(output) == long
    assert long_numbers(v4.new_output("stream", text="of 1.23456789")) == ["1.23456789"]
