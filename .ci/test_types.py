"""Type checkers see the fields of a question as options of the verbs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
USE = """
import tokenprice

tokenprice.ask("Llama 3 8B", "H100", batch="8", weights="fp8")
tokenprice.decide("Llama 3 8B", prompt_tokens="1k", output_tokens=100, tpot="20 ms")
tokenprice.ask("Llama 3 8B", "H100", bacth=8)
tokenprice.change("Llama 3 8B", "H100", batch=[8], tpot="20 ms")
"""


def test_a_wrong_name_and_a_wrong_type_are_found_and_nothing_else(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    check = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports", tmp_path / "use.py"]
    told = subprocess.run(check, cwd=ROOT, capture_output=True, text=True).stdout
    assert (
        "Found 2 errors" in told and 'did you mean "batch"' in told and 'Argument "batch" to "change"' in told
    )
