"""The command line, as a user would type it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main
from refusing import refused

ROOT = Path(__file__).parent.parent
MNIST = str(ROOT / "examples" / "mnist.toml")


def outputs(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(shlex.split(command))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_account(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    certificate, plot = tmp_path / "certificate.json", tmp_path / "plot.png"
    code, out, err = outputs(f"account {MNIST} --delta 1e-5 --certificate {certificate} --plot {plot}", capsys)
    assert (code, err) == (0, "")
    assert out.startswith("epsilon = 4.33916 at delta = 1e-05")
    assert plot.stat().st_size > 1000
    assert outputs(f"verify {certificate} --run {MNIST}", capsys)[:2] == (
        0,
        "accepted: epsilon = 4.33915858 at delta = 1e-05, replace one record, the last of 2000 iterates alone released; "
        "proof replayed step by step\n",
    )
    content = json.loads(certificate.read_text())
    content["claim"]["epsilon"] = 4.3
    certificate.write_text(json.dumps(content))
    code, out, _ = outputs(f"verify {certificate} --json", capsys)
    assert code == 1
    assert json.loads(out)["accepted"] is False


def test_a_searched_bound_has_a_certificate_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written, certificate = tmp_path / "run.toml", tmp_path / "certificate.json"
    loss, batches = li.losses.logistic(feature_norm=1.0, l2=0.1), li.FixedSize(records=1000, batch_size=10)
    li.write_run(li.Run(loss, batches, 0.5, li.OnMeanGradient(std=0.1), 2000), written)
    code, out, _ = outputs(f"account {written} --certificate {certificate}", capsys)
    assert code == 0
    assert "Theorem: window-tail (" in out
    assert outputs(f"verify {certificate} --run {written}", capsys)[1].startswith("accepted: ")


def test_account_as_json_with_releases_and_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(outputs(f"account {MNIST} --json --releases 400 1000", capsys)[1])
    assert content["releases"] == [400, 1000]
    assert content["epsilon"] == li.account(li.read_run(MNIST), 1e-5, [400, 1000]).epsilon
    each = json.loads(outputs(f"account {MNIST} --each --json", capsys)[1])
    assert len(each["epsilons"]) == 40


def test_calibrate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written = tmp_path / "found.toml"
    code, out, _ = outputs(f"calibrate {MNIST} --epsilon 1 --write {written}", capsys)
    assert code == 0
    assert out.startswith("std = 0.0370270091 (was 0.01) meets epsilon <= 1 at")
    assert li.account(li.read_run(written), 1e-5).epsilon <= 1.0
    code, out, _ = outputs(f"calibrate {MNIST} --epsilon 5 --free steps --json", capsys)
    assert code == 0
    assert json.loads(out)["run"]["steps"] == 2960


def test_the_adjacency_of_a_file_is_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    zeroed, written, certificate = (tmp_path / name for name in ("zeroed.toml", "found.toml", "certificate.json"))
    text = Path(MNIST).read_text()
    zeroed.write_text('adjacency = "zero_out"\n' + text.replace("gradient_sensitivity", "gradient_norm"))
    code, out, _ = outputs(f"account {zeroed} --certificate {certificate}", capsys)
    assert code == 0
    assert "(zero out one record, mu = " in out.splitlines()[0]
    assert "zero out one record" in outputs(f"verify {certificate} --run {zeroed}", capsys)[1]
    assert outputs(f"calibrate {zeroed} --epsilon 1 --write {written}", capsys)[0] == 0
    assert li.read_run(written).adjacency is li.ZERO_OUT
    assert li.account(li.read_run(written), 1e-5).epsilon <= 1.0
    zeroed.write_text('adjacency = "zero-out"\n' + text)
    code, _, err = outputs(f"account {zeroed}", capsys)
    assert code == 2
    assert "adjacency must be one of replace_one, zero_out, add_or_remove_one. Got 'zero-out'" in err


def test_compare_and_theorems(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = outputs(f"compare {MNIST} --plot {tmp_path / 'compare.png'}", capsys)
    assert code == 0
    report = li.account(li.read_run(MNIST), 1e-5)
    _, table, refused, _ = out.split("\n\n")
    *applicable, lower = (line.split() for line in table.splitlines()[1:])
    assert [one[2] for one in applicable] == [one.theorem.name for one in report.guarantees]
    assert lower[1:3] == ["lower", "bound:"]
    total, *counts = (int(line.split()[0]) for line in refused.splitlines())
    assert total == sum(counts) == len(report.inapplicable)
    in_full = outputs(f"compare {MNIST} --all", capsys)[1]
    assert all(theorem.name in in_full for theorem in li.theorems.CATALOGUE)
    assert not any(theorem.name in in_full for theorem in li.theorems.PAPERS)
    with_papers = outputs(f"compare {MNIST} --all --papers", capsys)[1]
    assert all(theorem.name in with_papers for theorem in li.theorems.ALL)
    assert all(f"{one.theorem.name}: {one.because}." in in_full for one in report.inapplicable)
    assert (tmp_path / "compare.png").exists()
    code, out, _ = outputs("theorems --json", capsys)
    assert [one["name"] for one in json.loads(out)["theorems"]] == [theorem.name for theorem in li.theorems.ALL]
    assert "erratum E1.1" in outputs("theorems", capsys)[1]


@pytest.mark.parametrize(
    ("command", "field", "said"),
    [
        ("account missing.toml", "path", "missing.toml cannot be read"),
        (f"account {MNIST} --delta 2", "delta", "delta must be a float in (0, 1). Got 2."),
        (f"account {MNIST} --releases 99999", "releases", "releases must be at most steps = 2000"),
        (f"calibrate {MNIST} --epsilon -1", "epsilon", "epsilon must be a float in (0, inf). Got -1."),
        (f"calibrate {MNIST} --epsilon 1 --write run.yaml", "path", "must end in .toml or .json"),
        ("verify missing.json", "path", "missing.json cannot be read"),
        ("verify .", "path", "cannot be read"),
        (
            f"calibrate {MNIST} --epsilon 4 --free steps --most-steps 10",
            "most_steps",
            "most_steps must be at least one epoch",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_two(
    command: str, field: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(shlex.split(command), capsys)
    assert error.field == field
    assert said in str(error)


@pytest.mark.parametrize(
    ("command", "code", "field", "values"),
    [
        (f"verify {MNIST}", "verified_file_not_json", None, {"path": MNIST}),
        (f"account {MNIST} --each --group 2", "each_of_group", "each", {}),
        (f"account {MNIST} --each --group-records 1 2", "each_of_group", "each", {}),
        (f"audit {MNIST} --make-neighbour replace-one", "neighbour_of_simulation", "make_neighbour", {}),
        ("budget {folder}/team.sqlite --create --epsilon 3", "creation_incomplete", "delta", {}),
        ("budget {folder}/team.sqlite --create --delta 1e-5", "creation_incomplete", "epsilon", {}),
        ("budget {folder}/team.sqlite --user-records 2", "option_fixed_at_creation", "user_records", {}),
        (
            f"budget {{folder}}/team.sqlite --create --epsilon 3 --delta 1e-5 --spend {MNIST}",
            "spend_without_what",
            "what",
            {},
        ),
        ("audit {folder}/trainer.py", "trainer_file_failed", None, {"kind": "KeyError", "reason": "'lost'"}),
    ],
)
def test_what_cannot_be_asked_has_its_code(
    command: str,
    code: str,
    field: str | None,
    values: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trainer = "data, neighbour = [1.0], [2.0]\ndef train(data, seed):\n    raise KeyError('lost')\n"
    (tmp_path / "trainer.py").write_text(trainer)
    error = refused(shlex.split(command.format(folder=tmp_path)), capsys)
    assert (error.code, error.field) == (code, field)
    assert error.values.items() >= values.items()


@pytest.mark.parametrize(
    ("command", "close"),
    [
        (f"account {MNIST} --detla 1e-5", "--delta"),
        (f"account {MNIST} --detla=1e-5", "--delta"),
        ("acount run.toml", "account"),
        (f"calibrate {MNIST} --epsilon 1 --free stepsize", "step_size"),
        (f"account {MNIST} detla", None),
        ("completion xyzzy", None),
    ],
)
def test_the_word_that_was_meant(command: str, close: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(shlex.split(command))
    err = capsys.readouterr().err
    assert caught.value.code == 2
    assert err.count("\n") == 1
    assert (f" Did you mean {close}?" in err) if close else ("Did you mean" not in err)


@pytest.mark.parametrize("option", ["--plot out/plot.xyz", "--certificate .", "--each --plot out/plot.xyz"])
def test_what_cannot_be_written_does_not_lose_the_report(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outputs(f"account {MNIST} {option}", capsys)
    assert code == 2
    assert out.startswith("epsilon ")
    assert err.startswith("lastiterate: ")
    assert err.count("\n") == 1


def test_every_records_own_epsilon_comes_with_the_certificate_of_everybody(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "certificate.json"
    code, out, _ = outputs(f"account {MNIST} --each --certificate {path} --json", capsys)
    assert code == 0
    assert len(json.loads(out)["epsilons"]) == 40
    assert outputs(f"verify {path} --run {MNIST}", capsys)[0] == 0


def test_composition_has_a_certificate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written, path = tmp_path / "run.toml", tmp_path / "certificate.json"
    batches, noise = li.Poisson(records=100, rate=0.1), li.OnMeanGradient(std=1.0)
    li.write_run(li.Run(li.losses.network(clip=1.0), batches, 1.0, noise, 20), written)
    code, out, _ = outputs(f"account {written} --certificate {path}", capsys)
    assert code == 0
    assert out.startswith("epsilon = ")
    assert outputs(f"verify {path} --run {written}", capsys)[1].endswith("; recomputed from the run\n")


def test_an_unknown_option_is_two() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["account", MNIST, "--detla", "1e-5"])
    assert caught.value.code == 2


def test_errata(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outputs("errata --effect unsound", capsys)
    assert code == 0
    assert "E0.1       unsound" in out
    assert "E2.2 " not in out
    assert "0.68791" in out
    full = outputs("errata --effect loose --full", capsys)[1]
    assert "corrected: the exact constant" in full
    assert "test:      tests/runs/test_lipschitz.py" in full
    listed = json.loads(outputs("errata --json", capsys)[1])["errata"]
    assert {one["effect"] for one in listed} >= {"unsound", "loose", "typo"}
