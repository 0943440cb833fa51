"""Kernels for the tests, forked from one process that has imported what chapters import: seconds less for each."""

import multiprocessing
import os
import time
from multiprocessing import forkserver
from unittest import mock

IMPORTED = [
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "ipywidgets",
    "scipy.optimize",
    "book.explorer",
    __name__,
]
INLINE = "module://matplotlib_inline.backend_inline"  # Matplotlib reads it when it is imported


class Kernel:
    """What the manager of a kernel expects of its process: that of ``subprocess.Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, process):
        self.process, self.pid = process, process.pid

    def poll(self):
        return self.process.exitcode

    def wait(self):
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)


def launch(cmd, env, cwd, **_):
    """In place of ``jupyter_client.launcher.launch_kernel``, for a kernel of the same interpreter."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with mock.patch.dict(os.environ, MPLBACKEND=INLINE):
        forkserver.ensure_running()
    process = context.Process(target=_kernel, args=(cmd[cmd.index("-f") :], dict(env), cwd))
    process.start()
    while os.getpgid(process.pid) != process.pid:  # signals for a kernel go to its whole group
        time.sleep(0.001)
    return Kernel(process)


def _kernel(arguments, env, cwd):
    import pandas as pd
    from ipykernel.kernelapp import launch_new_instance

    pd.set_option("display.max_columns", 20)  # as where pandas is first imported in a kernel
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    launch_new_instance(argv=arguments)
