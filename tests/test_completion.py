"""`lastiterate completion`, in a real bash."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lastiterate.cli import main
from lastiterate.cli.commands import COMMANDS
from refusing import refused

_PRESS_TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p lastiterate); function=${function##*-F }; function=${function%% *}
"$function" lastiterate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "lastiterate.bash"
    command = [sys.executable, "-m", "lastiterate.cli", "completion", "bash"]
    path.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return path


def completed(script: Path, *words: str, folder: Path | None = None) -> list[str]:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    command = [bash, "--norc", "-c", _PRESS_TAB, "bash", str(script), "lastiterate", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""
    return sorted(word.strip() for word in done.stdout.split("\n") if word.strip())


def test_commands(script: Path) -> None:
    assert completed(script, "acc") == ["account"]
    assert completed(script, "re") == ["reproduce"]
    assert set(completed(script, "")) >= {command.name for command in COMMANDS}


def test_options_and_choices(script: Path) -> None:
    assert completed(script, "account", "--cert") == ["--certificate"]
    assert completed(script, "calibrate", "--free", "step") == ["step_size", "steps"]
    assert "--certificate" not in completed(script, "compare", "--")


def test_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "run.toml").touch()
    assert completed(script, "account", "run", folder=tmp_path) == ["run.toml"]
    assert completed(script, "train", "--write", "ru", folder=tmp_path) == ["run.toml"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_with_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [command.name for command in COMMANDS if command.name not in script] == []


def test_without_shtab_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert refused(["completion", "bash"], capsys).code == "completion_without_shtab"
