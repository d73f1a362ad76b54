"""Every code block of the README runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_there_is_nothing_but_python_in_it() -> None:
    assert len(BLOCKS) >= 6
    assert {language for language, _ in BLOCKS} == {"python"}


@pytest.mark.parametrize("code", [code for _, code in BLOCKS])
def test_a_block_of_the_readme_runs(code: str, server: tuple[str, str], tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    if "print(" in code:
        assert ran.stdout
