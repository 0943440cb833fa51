"""Kernels for the tests, forked from one process that has imported what chapters import: seconds less for each."""

import multiprocessing
import os
import threading
import time
from functools import partial
from multiprocessing import forkserver
from types import SimpleNamespace
from unittest import mock

# Others' packages: of our own code each kernel imports what it needs, and is run again only if this changes.
IMPORTED = f"ipykernel.kernelapp matplotlib.pyplot ipywidgets scipy.optimize sympy xarray {__name__}".split()


def launch(cmd, env, cwd, **_):
    """In place of ``jupyter_client.launcher.launch_kernel``, for a kernel of the same interpreter."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    # Matplotlib reads it when it is imported
    with mock.patch.dict(os.environ, MPLBACKEND="module://matplotlib_inline.backend_inline"):
        forkserver.ensure_running()
    process = context.Process(target=_kernel, args=(cmd[cmd.index("-f") :], dict(env), cwd))
    process.start()
    while os.getpgid(process.pid) != process.pid:  # signals for a kernel go to its whole group
        time.sleep(0.001)
    return SimpleNamespace(  # what its manager uses of a subprocess.Popen
        pid=process.pid, poll=lambda: process.exitcode, wait=process.join, send_signal=partial(os.kill, process.pid),
        stdin=None, stdout=None, stderr=None,
    )  # fmt: skip


def _kernel(arguments, env, cwd):
    import pandas as pd
    from ipykernel.kernelapp import launch_new_instance

    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    pd.set_option("display.max_columns", 20)  # the value that pandas takes where it is imported in a kernel
    threading.Thread(target=_end_with_the_tests, daemon=True).start()
    launch_new_instance(argv=arguments)


def _end_with_the_tests():
    multiprocessing.parent_process().join()
    os._exit(1)
