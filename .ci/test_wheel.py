"""The package as a user installs it: a wheel in an empty environment, away from this folder."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
USE = """
import inferlib
import tokenprice

found = tokenprice.ask("Llama 3 70B", "8x H100", batch=32, by="all")
print(*(found[key].feasible for key in ("kernels", "pope2022", "liminal2025")))
try:
    from inferlib.papers.erdil2025 import derivations
except ImportError as missing:
    print(missing)
"""


def run(*command, cwd):
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_library_works_alone(tmp_path):
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # setuptools leaves its build folder in the source tree, so build from a copy
    source = tmp_path / "source"
    for floor in ("inferlib", "tokenprice"):
        shutil.copytree(ROOT / floor, source / floor, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    wheels = tmp_path / "wheels"
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, source, cwd=tmp_path)
    (wheel,) = wheels.glob("inferlib-*.whl")

    # without its own pip and without compiled modules, the environment takes half the time
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    target = ["--python", python, "install", "--no-compile", "-c", ROOT / "constraints.txt"]
    run(*pip, *target, wheel, cwd=tmp_path)

    command = python.with_name("tokenprice.exe" if sys.platform == "win32" else "tokenprice")
    asked = ["Llama 3.3 70B", "4x H100", "--weights", "fp8", "--json", "--batch", "32"]
    found = json.loads(run(command, "ask", *asked, cwd=tmp_path))
    assert found["low"] < found["seconds"] < found["high"] and not found["warnings"]
    promise = [
        "--tpot",
        "50/s",
        "--ttft",
        "1s",
        "--prompt-tokens",
        "2k",
        "--output-tokens",
        "500",
        "--counts",
        "4",
    ]
    asked = ["Llama 3.3 70B", "--weights", "fp8", "--json"]
    assert json.loads(run(command, "decide", *asked, *promise, cwd=tmp_path))["offers"]

    installed = run(
        python, "-c", "import importlib.metadata as m; print(len(list(m.distributions())))", cwd=tmp_path
    )
    assert int(installed) == 2  # the wheel, and NumPy
    said = run(python, "-c", USE, cwd=tmp_path)
    assert said.split()[:3] == ["True"] * 3 and "pip install 'inferlib[derive]'" in said, said
