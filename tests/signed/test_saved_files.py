"""Reports as files: by their endings, with digests that are safe to release; never lost when a file cannot be written."""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reports import DELTA, PAGES, REPORTS, SEEDED, run_of, saved

import lastiterate as li
from lastiterate.cli import main
from lastiterate.report.digests import digest_of
from raising import raises


def test_json_holds_report_certificate_and_label() -> None:
    report = REPORTS["random"]
    content = json.loads(saved(report, "json", model=b"weights"))
    assert content["report"]["epsilon"] == report.epsilon
    assert content["certificate"] == report.certificate
    assert content["label"] == report.label()
    assert content["written"]["digests"] == {"model": f"sha256:{hashlib.sha256(b'weights').hexdigest()}"}
    assert li.verify(content, report.run).accepted


def test_text_is_the_page_that_a_report_prints() -> None:
    text = saved(REPORTS["seeded"], "txt")
    assert text.startswith(REPORTS["seeded"].details())
    assert text.startswith(str(SEEDED))
    assert f"run sha256:{digest_of(REPORTS['seeded'].certificate['run'])}" in text


@pytest.mark.parametrize("name", ["report.pdf", "report", "report.htm", "report.html.gz"])
def test_other_endings_are_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(li.errors.InvalidInput, match=r"must end in \.html, \.json or \.txt\. Got .* For a PDF, open"):
        REPORTS["replayed"].save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_every_records_report_is_that_for_everybody(tmp_path: Path) -> None:
    li.account_each(run_of(), DELTA).save(tmp_path / "report.html", curves=False)
    assert li.verify((tmp_path / "report.html").read_text(encoding="utf-8"), run_of()).accepted


@pytest.mark.parametrize(
    ("entry", "value", "said"),
    [
        ("epsilon", 0.1, "its report has epsilon = 0.1, its certificate has "),
        ("delta", 1e-9, "delta is 1e-09 in its report and 1e-05 in its certificate"),
        ("caveats", [SEEDED.to_dict()], "caveats is [{'code': 'noise_seeded'"),
        ("caveats", ["none"], "caveats is ['none'] in its report"),
        ("unit", {"code": "noise"}, "unit.code is noise in its report and neighbours in its certificate"),
        ("unit", li.ZERO_OUT.unit().to_dict(), "unit.adjacency is zero_out in its report and replace_one in its"),
        ("releases", [3], "releases is [3] in its report and [] in its certificate"),
        ("assumptions", [], "assumptions is [] in its report"),
        ("theorem", "mine", "theorem is mine in its report"),
        ("run", {}, "run.steps is not given in its report and 20 in its certificate"),
    ],
)
def test_a_report_beside_a_certificate_has_to_say_the_same(entry: str, value: Any, said: str) -> None:
    content = json.loads(saved(REPORTS["replayed"], "json"))
    content["report"][entry] = value
    assert said in li.verify(content).reason


def test_a_digest_of_data_takes_a_key_that_stays_with_the_owner(tmp_path: Path) -> None:
    data, key = tmp_path / "data.csv", tmp_path / "data.key"
    data.write_text("a,y\n1,2\n")
    report = REPORTS["replayed"]
    with pytest.raises(li.errors.InvalidInput, match="data needs data_key, the name of a file with a secret key"):
        report.save(tmp_path / "report.html", data=data)
    assert not (tmp_path / "report.html").exists()
    page = saved(report, data=data, data_key=key, curves=False)
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    secret = bytes.fromhex(key.read_text().strip())
    expected = hmac.new(secret, data.read_bytes(), "sha256").hexdigest()
    assert f"hmac-sha256:{expected}" in page
    assert key.read_text().strip() not in page
    assert hashlib.sha256(data.read_bytes()).hexdigest() not in page
    assert f"hmac-sha256:{expected}" in saved(report, data=data, data_key=key, curves=False)
    other = saved(report, data=data, data_key=tmp_path / "other.key", curves=False)
    assert expected not in other
    public = saved(report, data=data, data_is_public=True, curves=False)
    assert hashlib.sha256(data.read_bytes()).hexdigest() in public
    key.write_text("secret")
    with pytest.raises(li.errors.InvalidInput, match="must hold a key of lastiterate: 64 hexadecimal digits"):
        saved(report, data=data, data_key=key)
    with pytest.raises(li.errors.InvalidInput, match="cannot be written"):
        saved(report, data=data, data_key=tmp_path / "none" / "data.key")


def test_models_may_be_files_bytes_or_arrays(tmp_path: Path) -> None:
    weights = np.arange(3.0)
    np.save(tmp_path / "weights.npy", weights)
    report = REPORTS["replayed"]
    of_file = json.loads(saved(report, "json", model=tmp_path / "weights.npy"))["written"]["digests"]
    of_array = json.loads(saved(report, "json", model=weights))["written"]["digests"]
    assert of_file == of_array
    for wrong in (object(), {"a": 1}, [object()]):
        with raises(
            "must_be", "model", kind=li.errors.InvalidInput, allowed="the name of a file, bytes, or arrays of numbers"
        ):
            saved(report, model=wrong)
    with pytest.raises(li.errors.InvalidInput, match="cannot be read: No such file"):
        saved(report, model=tmp_path / "none.bin")


@pytest.mark.parametrize("ending", ["html", "json"])
def test_verify_compares_model_and_data(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data, key, path = (tmp_path / name for name in ("model.bin", "data.csv", "data.key", f"report.{ending}"))
    model.write_bytes(b"weights")
    data.write_text("a,y\n1,2\n")
    REPORTS["replayed"].save(path, model=model, data=data, data_key=key, curves=False)
    files = ["--model", str(model), "--data", str(data), "--data-key", str(key)]
    assert main(["verify", str(path), *files]) == 0
    assert main(["verify", str(path), "--data", str(data)]) == 2
    assert main(["verify", str(path), "--data", str(data), "--data-key", str(tmp_path / "none")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    data.write_text("a,y\n1,3\n")
    assert main(["verify", str(path), *files]) == 1
    assert "rejected: the data is a different one" in capsys.readouterr().out
    model.write_bytes(b"other")
    assert main(["verify", str(path), *files]) == 1
    assert "rejected: the model is a different one" in capsys.readouterr().out
    REPORTS["replayed"].save(path, curves=False)
    assert main(["verify", str(path), *files]) == 1
    assert "rejected: it holds no digest of the model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "option", "printed"),
    [
        ("account {run}", "--certificate x.json", "epsilon = "),
        ("account {run}", "--report x.html", "epsilon = "),
        ("account {run}", "--plot x.png", "epsilon = "),
        ("account {run} --json", "--report x.html", '"epsilon"'),
        ("account {run} --each", "--report x.html", "epsilon of a record"),
        ("compare {run}", "--plot x.png", "epsilon at delta"),
        ("calibrate {run} --epsilon 1", "--write x.toml", "meets epsilon <= 1"),
        ("plan --records 2000 --features 5 --epsilon 1", "--write x.toml", "noise"),
        ("plan --records 2000 --features 5 --epsilon 1", "--plot x.png", "noise"),
        ("audit {run} --runs 40", "--plot x.png", "epsilon is at least"),
        ("budget {folder}/team.sqlite --create --epsilon 3 --delta 1e-5", "--certificate x.json", "Left: "),
        ("train {data} --target y --epsilon 5", "--certificate x.json", "releasing every iterate"),
        ("train {data} --target y --epsilon 5", "--report x.html", "releasing every iterate"),
        ("train {data} --target y --epsilon 5", "--write x.json", '"coefficients"'),
    ],
)
def test_an_answer_is_printed_whatever_cannot_be_written(
    command: str, option: str, printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, data, file = tmp_path / "run.toml", tmp_path / "data.csv", tmp_path / "file"
    li.write_run(replace(run_of(), loss=li.losses.general(smoothness=1.0, gradient_sensitivity=1.0)), run)
    data.write_text("a,y\n" + "0.5,1\n-0.5,0\n" * 100)
    file.write_text("")
    words = command.format(run=run, data=data, folder=tmp_path).split()
    name, ending = option.split()
    assert main([*words, name, str(file / ending)]) == 2
    said = capsys.readouterr()
    assert printed in said.out
    assert said.err.splitlines()[-1].startswith(f"lastiterate: {file / ending} cannot be ")


def test_train_writes_model_certificate_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model, key = tmp_path / "data.csv", tmp_path / "model.json", tmp_path / "data.key"
    report, certificate = tmp_path / "report.html", tmp_path / "certificate.json"
    data.write_text("a,y\n" + "0.5,1\n-0.5,0\n" * 100)
    words = ["train", str(data), "--target", "y", "--classes", "0", "1", "--epsilon", "2", "--delta", "1e-5"]
    words += ["--feature-norm", "1", "--write", str(model), "--data-key", str(key)]
    assert main([*words, "--certificate", str(certificate), "--report", str(report)]) == 0
    said = capsys.readouterr()
    assert f"model: {model} (check it with: lastiterate verify {model})" in said.out
    for path in (model, certificate, report):
        assert main(["verify", str(path)]) == 0
    assert main(["verify", str(report), "--model", str(model), "--data", str(data), "--data-key", str(key)]) == 0
    content = json.loads(model.read_text())
    content["report"]["epsilon"] = 1.0
    model.write_text(json.dumps(content))
    assert main(["verify", str(model)]) == 1
    assert "rejected: its report has epsilon = 1.0, its certificate has 1.99" in capsys.readouterr().out


def test_a_seeded_training_is_nothing_to_sign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, report = tmp_path / "data.csv", tmp_path / "report.html"
    data.write_text("a,y\n" + "0.5,1\n-0.5,0\n" * 100)
    words = ["train", str(data), "--target", "y", "--epsilon", "2", "--seed", "1", "--report", str(report)]
    assert main(words) == 0
    assert "Do not sign this page." in report.read_text(encoding="utf-8")
    assert main(["verify", str(report)]) == 1
    assert "rejected: DO NOT RELEASE" in capsys.readouterr().out


def test_what_can_be_written_is_written_beside_what_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, report, stated = tmp_path / "run.toml", tmp_path / "report.html", tmp_path / "stated.toml"
    li.write_run(run_of(), run)
    stated.write_text('[registry.basic]\nname = "Churn"\n')
    words = ["account", str(run), "--report", str(report), "--stated", str(stated)]
    assert main([*words, "--certificate", "/dev/null/c.json"]) == 2
    said = capsys.readouterr()
    assert f"report: {report} (check it with: lastiterate verify {report})" in said.out
    assert "Churn" in report.read_text(encoding="utf-8")
    assert main(["verify", str(report)]) == 0
    stated.write_text('[registry.basic]\nnam = "Churn"\n')
    report.unlink()
    assert main(words) == 2
    said = capsys.readouterr()
    assert "epsilon = " in said.out
    assert "'nam' is not a field of basic" in said.err
    assert not report.exists()


def test_without_matplotlib_only_the_plot_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    run, report = tmp_path / "run.toml", tmp_path / "report.html"
    li.write_run(run_of(), run)
    assert main(["account", str(run), "--plot", str(tmp_path / "x.png"), "--report", str(report)]) == 2
    said = capsys.readouterr()
    assert "epsilon = " in said.out
    assert "plots need matplotlib" in said.err
    assert "<svg" in report.read_text(encoding="utf-8")
    assert PAGES["replayed"].count("<path") == report.read_text(encoding="utf-8").count("<path")


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


WRITERS: dict[str, Callable[[Path], Any]] = {
    "a report": lambda folder: REPORTS["replayed"].save(folder / "file.html", curves=False),
    "a report as JSON": lambda folder: REPORTS["replayed"].save(folder / "file.json"),
    "a report as text": lambda folder: REPORTS["replayed"].save(folder / "file.txt"),
    "a certificate": lambda folder: REPORTS["replayed"].save_certificate(folder / "file.json"),
    "a selection": lambda folder: li.select(REPORTS["replayed"], trials=li.trials.Geometric(mean=2)).save_certificate(
        folder / "file.json"
    ),
    "a budget": lambda folder: li.Budget(1.0, DELTA).save_certificate(folder / "file.json"),
    "a run": lambda folder: li.write_run(REPORTS["replayed"].run, folder / "file.toml"),
    "a plot": lambda folder: REPORTS["replayed"].plot_comparison(folder / "file.svg"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_the_old_file_as_it_was(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[writer](tmp_path)
    (old,) = tmp_path.iterdir()
    before = old.read_bytes()
    old.chmod(0o640)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(li.errors.InvalidInput, match="No space left on device"):
        WRITERS[writer](tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [old.name]
    assert old.read_bytes() == before
    monkeypatch.undo()
    WRITERS[writer](tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [old.name]
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_links_stay_links_and_devices_devices(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "file.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    REPORTS["replayed"].save_certificate(link)
    assert link.is_symlink()
    assert json.loads(target.read_text()) == REPORTS["replayed"].certificate
    REPORTS["replayed"].save_certificate("/dev/null")
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no devices without an end")
def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    (tmp_path / "run.toml").symlink_to("/dev/zero")
    with raises("file_too_long", "path", kind=li.errors.InvalidInput, megabytes=64):
        li.read_run(tmp_path / "run.toml")
