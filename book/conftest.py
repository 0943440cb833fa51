"""The kernels of the tests of chapters, on sockets that cannot be mixed up; one that dies is reported at once."""

import runpy
import sys
import time
from pathlib import Path
from queue import Empty

import nbval.kernel
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import local_provisioner

from book._tools import forked

SOCKETS = runpy.run_path(str(Path(__file__).parent / "_tools" / "refresh.py"))["sockets"]


def await_reply(self, message, timeout=None, wait=nbval.kernel.RunningKernel.await_reply):
    """nbval would wait for a dead kernel until the time of the cell is over, and then forever."""
    end = time.monotonic() + timeout
    while True:
        try:
            return wait(self, message, timeout=2)
        except Empty:
            if not self.is_alive():
                raise RuntimeError("the kernel died while it ran this cell") from None
            if time.monotonic() > end:
                raise


nbval.kernel.KernelManager = lambda **options: KernelManager(**options, **SOCKETS())
nbval.kernel.RunningKernel.await_reply = await_reply
if sys.platform == "linux":  # elsewhere what has been imported may not survive a fork
    local_provisioner.launch_kernel = forked.launch
