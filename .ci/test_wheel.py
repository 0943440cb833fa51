"""The package as a stranger installs it: a wheel, in an empty environment, far from this folder."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
USE = """
import inferlib
from inferlib.papers import erdil2025

box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
step = inferlib.estimate(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(32, 4096))
curve = erdil2025.frontier(erdil2025.models["Llama 3 70B"], erdil2025.chips["H100"], pipeline=False)
print(len(inferlib.equations()) > 250, len(curve) > 20, step is not None)
try:
    inferlib.scorecard("erdil2025", "Table 1")
except LookupError as refused:
    print(refused)
"""


def run(*command, cwd):
    alone = os.environ | {"INFERLIB_CACHE": ""}  # what the source tree has computed does not help
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_library_works_alone(tmp_path):
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # setuptools leaves its build folder in the source tree, so it gets a copy of what it needs.
    source = tmp_path / "source"
    shutil.copytree(ROOT / "inferlib", source / "inferlib", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    wheels = tmp_path / "wheels"
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, source, cwd=tmp_path)
    (wheel,) = wheels.glob("inferlib-*.whl")

    # Without a pip of its own, and without compiling what is imported once, it is there in half the time.
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    target = ["--python", python, "install", "--no-compile", "-c", ROOT / "constraints.txt"]
    run(*pip, *target, wheel, cwd=tmp_path)

    command = python.with_name("inferlib.exe" if sys.platform == "win32" else "inferlib")
    asked = ["Llama 3.3 70B", "--weights", "fp8", "--json"]
    said = json.loads(run(command, "ask", *asked, "--chip", "4x H100", "--batch", "32", cwd=tmp_path))
    assert said["low"] < said["seconds"] < said["high"] and not said["cautions"]
    promise = ["--speed", "50", "--first-token", "1", "--prompt", "2k", "--output", "500", "--counts", "4"]
    assert json.loads(run(command, "decide", *asked, *promise, cwd=tmp_path))["offers"]

    row = run(python, "-c", USE, cwd=tmp_path)
    assert row.split()[:3] == ["True"] * 3 and "pip install -e" in row, row
