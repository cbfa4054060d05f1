"""What a CI service or a hook reads from this repository: valid, and its very commands run in throw-away clones."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import trees
from tests.command import ROOT
from tests.repo import Repo
from tests.reports import told
from tests.test_check import EXTRA, FIFTH, fifth


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path / "origin")
    repo.commit(trees.after())
    return repo


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder for PATH with `refactor-tool` as an image or a hook's environment has it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    shutil.copy(ROOT / "ci/refactor-tool", folder / "refactor-tool")
    for file in folder.iterdir():
        file.chmod(0o755)
    return folder


def environment(tools: Path, more: Mapping[str, str]) -> dict[str, str]:
    own = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tools), "LC_ALL": "C.UTF-8"}
    return own | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | dict(more)


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


# --- valid --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "name"), [("vendor.github-actions", "action.yml"), ("vendor.gitlab-ci", "ci/gitlab.yml")]
)
def test_file_is_what_the_service_takes(schema: str, name: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_are_what_pre_commit_takes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    env = os.environ | {"PRE_COMMIT_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["ci/github", "ci/refactor-tool", "scripts/gate", "scripts/schemas"])
def test_script_is_executable_and_parses(name: str) -> None:
    assert (ROOT / name).stat().st_mode & 0o111 == 0o111
    subprocess.run(["bash", "-n", ROOT / name], check=True)


def test_no_input_of_the_action_reaches_a_shell_line() -> None:
    action = load("action.yml")
    (step,) = action["runs"]["steps"]
    assert "${{" not in step["run"]
    assert {f"INPUT_{name.upper().replace('-', '_')}" for name in action["inputs"]} == set(step["env"])
    script = (ROOT / "ci/github").read_text(encoding="utf-8")
    assert all(name in script for name in step["env"])


# --- GitHub -------------------------------------------------------------------------------------------


def pull_request(repo: Repo) -> Path:
    """Return the runner's checkout of a pull request that adds a wait: a merge commit, depth 1, nothing else."""
    repo.git("checkout", "-q", "-b", "pull")
    repo.commit(fifth(), "add a wait")
    repo.git("checkout", "-q", "--detach", "main")
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "pull")
    repo.git("update-ref", "refs/pull/7/merge", "HEAD")
    repo.git("checkout", "-q", "main")
    runner = Repo(repo.path.parent / "runner")
    runner.git("remote", "add", "origin", repo.path.as_uri())
    runner.git("fetch", "-q", "--depth=1", "origin", "+refs/pull/7/merge:refs/remotes/pull/7/merge")
    runner.git("checkout", "-q", "--detach", "refs/remotes/pull/7/merge")
    return runner.path


def github(where: Path, tmp_path: Path, tools: Path, **more: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run what the action runs, as the runner does."""
    if not (Path(sys.prefix) / ".pins/requirements.txt").is_file():
        pytest.skip("the tests do not run in the virtual environment of scripts/test")
    files = tmp_path / "github"
    files.mkdir(exist_ok=True)
    env = {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(tmp_path), "REFACTOR_TOOL_VENV": sys.prefix}
    env |= {name: str(files / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    (step,) = load("action.yml")["runs"]["steps"]
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(
        command, cwd=where, env=environment(tools, env | more), capture_output=True, text=True, check=False
    )
    return done, files


def test_action_annotates_what_a_pull_request_adds(repo: Repo, tmp_path: Path, tools: Path) -> None:
    where = pull_request(repo)
    sarif = tmp_path / "out.sarif"
    done, files = github(where, tmp_path, tools, GITHUB_BASE_REF="main", INPUT_SARIF=str(sarif))
    assert done.returncode == 1, done.stdout + done.stderr
    assert (files / "GITHUB_OUTPUT").read_text() == "exit-code=1\n"
    rows = told("github", done.stdout.encode())
    assert [row for row in rows if row[3]] == [("apiserver-ready", EXTRA, 11, True)]
    assert told("github-summary", (files / "GITHUB_STEP_SUMMARY").read_bytes()) == rows
    assert told("sarif", sarif.read_bytes()) == rows


def test_action_passes_where_nothing_was_added(repo: Repo, tmp_path: Path, tools: Path) -> None:
    where = repo.path.parent / "runner"
    repo.git("clone", "-q", "--depth=1", repo.path.as_uri(), str(where))
    done, files = github(where, tmp_path, tools)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (files / "GITHUB_OUTPUT").read_text() == "exit-code=0\n"
    assert done.stdout.startswith("::notice title=refactor-tool::passed: ")


def test_action_does_not_pass_without_its_base(repo: Repo, tmp_path: Path, tools: Path) -> None:
    where = pull_request(repo)
    done, files = github(where, tmp_path, tools, GITHUB_BASE_REF="absent")
    assert done.returncode == 3
    assert (files / "GITHUB_OUTPUT").read_text() == "exit-code=3\n"
    assert "::error title=refactor-tool::" in done.stdout


def test_action_takes_inputs_as_they_are(repo: Repo, tmp_path: Path, tools: Path) -> None:
    done, _ = github(repo.path, tmp_path, tools, INPUT_FAIL_ON="error; touch owned", INPUT_PATH="$(touch owned)")
    assert done.returncode == 2
    assert not (repo.path / "owned").exists()


# --- GitLab -------------------------------------------------------------------------------------------


def gitlab(where: Path, tools: Path, **more: str) -> subprocess.CompletedProcess[str]:
    script = "\n".join(load("ci/gitlab.yml")["refactor-tool"]["script"])
    command = ["sh", "-e", "-c", script]
    env = environment(tools, {"CI_MERGE_REQUEST_DIFF_BASE_SHA": ""} | more)
    return subprocess.run(command, cwd=where, env=env, capture_output=True, text=True, check=False)


def test_gitlab_job_reports_what_a_merge_request_adds(repo: Repo, tools: Path) -> None:
    base = repo.git("rev-parse", "HEAD").decode().strip()
    repo.git("config", "uploadpack.allowReachableSHA1InWant", "true")
    repo.commit(fifth(), "add a wait")
    where = repo.path.parent / "builds"
    repo.git("clone", "-q", "--depth=1", repo.path.as_uri(), str(where))
    done = gitlab(where, tools, CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    assert done.returncode == 1, done.stdout + done.stderr
    reports = load("ci/gitlab.yml")["refactor-tool"]["artifacts"]["reports"]
    issues = json.loads((where / reports["codequality"]).read_bytes())
    assert [(one["location"]["path"], one["severity"]) for one in issues if one["severity"] != "info"] == [
        (EXTRA, "major")
    ]
    suites = ElementTree.fromstring((where / reports["junit"]).read_bytes())
    assert suites.get("failures") == "2", "the gate, and what it failed on"
    assert done.stdout.splitlines()[-1].startswith("failed (exit 1): 1 finding at or above error")


def test_gitlab_job_passes_on_a_migrated_branch(repo: Repo, tools: Path) -> None:
    done = gitlab(repo.path, tools)
    assert done.returncode == 0, done.stdout + done.stderr


def test_gitlab_job_does_not_pass_without_its_base(repo: Repo, tools: Path) -> None:
    assert gitlab(repo.path, tools, CI_MERGE_REQUEST_DIFF_BASE_SHA="1" * 40).returncode == 3


# --- pre-commit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [["commit", "-q", "-m", "x"], ["commit", "-q", "-a", "-m", "x"], ["commit", "-q", "-m", "x", "pkg"]]
)
@pytest.mark.parametrize("adds", [False, True], ids=["harmless", "a wait"])
def test_hook_lets_through_what_adds_no_wait(how: list[str], adds: bool, repo: Repo, tools: Path) -> None:
    (hook,) = load(".pre-commit-hooks.yaml")
    script = repo.path / ".git/hooks/pre-commit"
    line = f"PATH={shlex.quote(str(tools))}:$PATH PYTHONPATH={shlex.quote(str(ROOT))} {hook['entry']}"
    script.write_text(f"#!/bin/sh\n{line}\n")
    script.chmod(0o755)
    (repo.path / EXTRA).write_text("package agent\n")
    repo.git("add", EXTRA)
    repo.git("commit", "-q", "--no-verify", "-m", "a file")
    (repo.path / EXTRA).write_text(FIFTH["plain call"] if adds else "package agent\n\nconst harmless = 1\n")
    if how[-1] == "x" and "-a" not in how:
        repo.git("add", EXTRA)
    done = repo.run(*how)
    assert (done.returncode != 0) is adds, done.stdout + done.stderr
    assert (b"steps to do: apiserver-ready (1 site)" in done.stdout + done.stderr) is adds
    assert (EXTRA in repo.git("show", "--name-only", "--format=", "HEAD").decode()) is True
    assert (
        re.search(hook["files"], EXTRA) and re.search(hook["files"], "go.mod") and not re.search(hook["files"], "a.md")
    )


# --- the image ----------------------------------------------------------------------------------------


def test_image_has_what_it_runs(tmp_path: Path) -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    folder = tmp_path / "opt"
    for line in lines:
        if line.startswith("COPY "):
            source, target = line.split()[1:]
            where = tmp_path / target.lstrip("/") if target.startswith("/") else folder / target
            tracked = subprocess.run(
                ["git", "-C", ROOT, "ls-files", source], capture_output=True, text=True, check=False
            )
            assert tracked.returncode or tracked.stdout, f"{source} is not committed"
            (where if target.endswith("/") else where.parent).mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, where)
            else:
                shutil.copy(ROOT / source, where)
    (entry,) = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT ")]
    (settings,) = [line.split()[1:] for line in lines if line.startswith("ENV ")]
    env = dict(setting.split("=", 1) for setting in settings)
    assert env["PYTHONPATH"] == next(line.split()[1] for line in lines if line.startswith("WORKDIR "))
    tools = tmp_path / "usr/local/bin"
    (tools / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (tools / "python3").chmod(0o755)
    env |= {"PYTHONPATH": str(folder), "PATH": f"{tools}:{os.environ['PATH']}"}
    command = [*entry, "plan", str(ROOT / "fixtures/k3s"), "--stdout"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout[:5]) == (1, b"From "), done.stderr
    assert (
        subprocess.run([*entry, "check", "."], cwd=tmp_path, env=env, capture_output=True, check=False).returncode == 4
    )
