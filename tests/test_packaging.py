"""What is installed is what was tested: the built archives, the pins and the hygiene of committed files."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from refactor_tool import __version__

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build sdist and wheel from the work tree, with the pinned backend and nothing fetched."""
    return _build(ROOT, tmp_path_factory.mktemp("dist"))


def _build(source: Path, out: Path) -> tuple[Path, Path]:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _member(wheel: Path, suffix: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(suffix))
        return archive.read(name).decode()


@pytest.mark.parametrize("folder", ["templates", "fixtures", "schemas"])
def test_wheel_ships_folder_beside_the_code(archives: tuple[Path, Path], folder: str) -> None:
    _, wheel = archives
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert here
    assert {f"refactor_tool/{name}" for name in here} == {
        n for n in _names(wheel) if n.startswith(f"refactor_tool/{folder}/")
    }


def test_wheel_holds_the_package_and_nothing_beside_it(archives: tuple[Path, Path]) -> None:
    _, wheel = archives
    tops = {name.partition("/")[0] for name in _names(wheel)}
    assert tops == {"refactor_tool", f"refactor_tool-{__version__}.dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in _names(wheel))


def test_wheel_declares_command_version_and_grammar(archives: tuple[Path, Path]) -> None:
    _, wheel = archives
    metadata = _member(wheel, ".dist-info/METADATA").splitlines()
    assert f"Version: {__version__}" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert {"Requires-Dist: tree-sitter==0.26.1", "Requires-Dist: tree-sitter-go==0.25.0"} <= set(metadata)
    assert "refactor-tool = refactor_tool.__main__:run" in _member(wheel, ".dist-info/entry_points.txt")


def test_sdist_builds_the_same_wheel(archives: tuple[Path, Path], tmp_path: Path) -> None:
    sdist, wheel = archives
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    _, again = _build(tmp_path / f"refactor_tool-{__version__}", tmp_path / "dist")
    assert again.read_bytes() == wheel.read_bytes()


def test_wheel_works_without_the_checkout(archives: tuple[Path, Path], tmp_path: Path) -> None:
    _, wheel = archives
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    module = [sys.executable, "-m", "refactor_tool"]
    run = {"cwd": tmp_path, "env": {"PYTHONPATH": str(site)}, "capture_output": True, "text": True}
    version = subprocess.run([*module, "--version"], **run)
    assert (version.returncode, version.stdout.split()[-1]) == (0, __version__)
    plan = subprocess.run([*module, "plan", str(site / "refactor_tool/fixtures/k3s"), "--stdout"], **run)
    assert (plan.returncode, plan.stdout[:5]) == (1, "From "), plan.stderr


# --- pins -------------------------------------------------------------------------------------------


def _pins(name: str) -> dict[str, set[str]]:
    """Return the locked versions by package; two where they differ by platform or Python version."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    pins: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r"([a-z0-9-]+)==([\w.]+)(?: ; [^;]+?)?((?: +--hash=sha256:[0-9a-f]{64})+) *", line)
            assert match, line
            pins.setdefault(match[1], set()).add(match[2])
    return pins


def _wanted(extra: str = "") -> list[Requirement]:
    return [
        Requirement(each) for each in (PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"])
    ]


@pytest.mark.parametrize(("name", "extra"), [("requirements.txt", ""), ("requirements-dev.txt", "dev")])
def test_lock_answers_pyproject(name: str, extra: str) -> None:
    pins = _pins(name)
    for wanted in _wanted(extra):
        assert wanted.name in pins, f"{wanted} is not in {name}: run scripts/lock"
        assert all(wanted.specifier.contains(Version(pin)) for pin in pins[wanted.name]), f"{wanted}: run scripts/lock"


def test_development_lock_has_the_very_pins_of_the_runtime() -> None:
    development = _pins("requirements-dev.txt")
    assert {name: development[name] for name in _pins("requirements.txt")} == _pins("requirements.txt")


def test_build_backend_is_the_locked_one() -> None:
    (requirement,) = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert requirement == f"hatchling=={min(_pins('requirements-dev.txt')['hatchling'])}"


# --- what is committed ------------------------------------------------------------------------------


def test_committed_files_name_no_machine_and_no_index() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    # spelt with a gap, so that this file does not hold them either
    spelt = "/ro ot/ /wo rk/ /tm p/w/ py pi.org python hosted.org proxy.go lang.org registry.np mjs.org"
    forbidden = [first + rest for first, rest in zip(spelt.split()[::2], spelt.split()[1::2], strict=True)]
    command = ["git", "grep", "-l", "-I", "-F", *(word for each in forbidden for word in ("-e", each))]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stdout + run.stderr) == (1, ""), "1 is git's word for: not found"


@pytest.mark.parametrize("path", ["scripts/run", "scripts/test", "scripts/check", "scripts/lock", ".ci/run"])
def test_script_is_executable_and_parses(path: str) -> None:
    assert (ROOT / path).stat().st_mode & 0o111 == 0o111
    subprocess.run(["bash", "-n", ROOT / path], check=True)
