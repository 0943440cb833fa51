"""The kernels of the tests of chapters, on sockets that cannot be mixed up."""

import runpy
from pathlib import Path

import nbval.kernel
from jupyter_client.manager import KernelManager

SOCKETS = runpy.run_path(str(Path(__file__).parent / "_tools" / "refresh.py"))[
    "sockets"
]

nbval.kernel.KernelManager = lambda **options: KernelManager(
    **options, **SOCKETS()
)
