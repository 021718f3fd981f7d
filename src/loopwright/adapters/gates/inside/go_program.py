"""Runs instead of the real go: it runs `go test` with -json and records it, then it runs two canaries.

Started as `go_program.py REAL_GO ARGUMENTS...` by a small script that is called `go` and found first on the PATH, so
also below make or a script. Whatever is not a plain run of tests goes to the real program as it is. Go compiles the
canaries into packages under test from files outside of the tree, by its own -overlay: what those packages do when they
start is done with them too. They are compiled while the tests run, and run after them.
"""

from __future__ import annotations  # older Pythons load it too

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from typing import Any, Iterator

VARIABLE = "LOOPWRIGHT_WITNESS"
# Flags that make something else of `go test`, and those that would write the user's files a second time or leave the
# canaries out.
OTHERWISE = frozenset({"c", "n", "x", "list", "fuzz", "h", "help", "overlay"})
WITH_VALUE = frozenset(
    {"run", "skip", "bench", "coverprofile", "coverpkg", "covermode", "cpuprofile", "memprofile"}
)
WITH_VALUE |= {"blockprofile", "mutexprofile", "trace", "outputdir", "o", "count", "shuffle", "vet"}
ALONE = frozenset({"cover", "json", "v", "failfast", "benchmem", "artifacts"})
BUILDING = frozenset({"tags", "mod", "modfile"})
ENDS = {"pass": "passed", "fail": "failed", "skip": "skipped"}
KINDS, RIGHT = ("must_pass", "must_fail"), ("passed", "failed")
MOST = 5
"""In so many packages, drawn again each time, canaries are tried: each has to be linked once more."""
AS_GIVEN = frozenset({"exec", "p"})
"""Flags that say how programs are run: with one of them, the canaries are compiled after the tests."""
CANARIES = """package {}

import "testing"

func {}(t *testing.T) {{}}
func {}(t *testing.T) {{ t.Error("on purpose") }}
"""


def flag(word: str) -> str:
    """Return the name of a flag, empty for another word."""
    return word.lstrip("-").partition("=")[0].replace("test.", "") if word.startswith("-") else ""


def is_watched(arguments: list[str]) -> bool:
    """Return whether this is a plain run of tests."""
    return arguments[:1] == ["test"] and not OTHERWISE & {flag(word) for word in arguments[1:]}


def without(arguments: list[str]) -> Iterator[str]:
    """Yield the arguments of `go test` but for those that do not concern a canary."""
    words = iter(arguments)
    for word in words:
        if flag(word) in WITH_VALUE:
            if "=" not in word:
                next(words, None)
        elif flag(word) not in ALONE:
            yield word


def package_at(folder: str) -> str:
    """Return the import path of a folder, empty if it is in no module."""
    below: list[str] = []
    while True:
        try:
            with open(os.path.join(folder, "go.mod"), encoding="utf-8") as file:
                found = re.search(r'^module\s+"?([^\s"]+)', file.read(), re.MULTILINE)
        except OSError:
            found = None
        above, name = os.path.split(folder)
        if found or above == folder:
            return "/".join([found[1], *reversed(below)]) if found else ""
        below.append(name)
        folder = above


class Witness:
    """Writes one line for each thing that happened, and passes on what a person would have read."""

    def __init__(self, told: dict[str, Any], arguments: list[str]) -> None:
        self.told = told
        self.names = ["Test_" + told[kind] for kind in KINDS]
        name = "{}-{}.jsonl".format(os.getpid(), os.urandom(8).hex())
        self.file = open(os.path.join(told["folder"], name), "a", encoding="utf-8", errors="replace")
        self.raw = any(flag(word) == "json" for word in arguments)
        self.verbose = any(flag(word) == "v" for word in arguments)
        self.open: dict[tuple[str, str], list[str]] = {}
        self.bad: set[str] = set()
        self.tested: dict[str, None] = {}
        self.ids: list[str] = []

    def say(self, **what: Any) -> None:
        """Write a line, so that nothing is lost if the process is ended the next moment."""
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    def take(self, line: str) -> None:
        """Take in a line of the real program."""
        try:
            event = json.loads(line)
            package, action = event.get("Package", ""), event["Action"]
        except (ValueError, AttributeError, TypeError, KeyError):
            sys.stdout.write(line)
            return
        if self.raw:
            sys.stdout.write(line)
        test, output = event.get("Test", ""), event.get("Output", "")
        if action == "run":
            self.open[package, test] = []
            self.ids.append("{}::{}".format(package, test))
            self.tested[package] = None
        elif action in ("output", "build-output"):
            self.show(package, test, output)
        elif action in ENDS and test:
            self.ended(package, test, action)
        elif action == "fail" and package not in self.bad:
            # It did not build, or did not end well, without a test that failed.
            self.say(e="collect", id=package, outcome="failed")

    def show(self, package: str, test: str, output: str) -> None:
        """Print what the real program would have printed: of a test that passes nothing, unless that was asked for."""
        if self.raw:
            return
        held = self.open.get((package, test))
        if self.verbose or held is None:
            sys.stdout.write(output)
        elif not output.startswith("=== "):
            held.append(output)

    def ended(self, package: str, test: str, action: str) -> None:
        """Note how a test ended."""
        held = self.open.pop((package, test), [])
        if action == "fail":
            self.bad.add(package)
            if not self.raw:
                sys.stdout.write("".join(held))
        self.report(package, test, ENDS[action])

    def report(self, package: str, test: str, outcome: str) -> None:
        """Note how a test ended."""
        self.say(e="report", id="{}::{}".format(package, test), when="call", outcome=outcome, hidden=False)

    def finish(self) -> None:
        """Note what was begun and not ended: the process that ran it was gone before."""
        for package, test in list(self.open):
            self.report(package, test, "failed")
        self.say(e="collected", ids=self.ids)


def started(command: list[str], **more: Any) -> subprocess.Popen[bytes]:
    """Start a program whose standard output is read."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, **more)


def text(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield the lines that a program prints."""
    for line in process.stdout or ():
        yield line.decode("utf-8", "replace")


def building(options: list[str]) -> Iterator[str]:
    """Yield the flags that also steer which files belong to a package."""
    for n, word in enumerate(options):
        if flag(word) in BUILDING:
            yield from [word] if "=" in word else options[n : n + 2]


def packages_of(go: str, options: list[str], names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the import path, the folder and the name of packages that have tests."""
    form = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}\t{{.Name}}{{end}}"
    asked = [go, "list", "-e", "-f", form, *building(options), *names]
    with started(asked, stderr=subprocess.DEVNULL) as process:
        for line in text(process):
            if line.strip():
                path, folder, name = line.rstrip("\n").split("\t")
                yield path, folder, name


def events(command: list[str]) -> Iterator[dict[str, Any]]:
    """Run tests and yield what happens in them; what programs print past the test runner says nothing."""
    with started(command, stderr=subprocess.DEVNULL) as process:
        for line in text(process):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def tried(
    go: str,
    options: list[str],
    rest: list[str],
    found: list[tuple[str, str, str]],
    names: list[str],
    runs: tuple[str, ...] = (),
) -> list[list[str]]:
    """Run the canaries in some packages; return how each of them ended, in one package after the other.

    `runs` are flags that say how their programs are run.
    """
    ends: list[list[str]] = [[] for _ in names]
    with tempfile.TemporaryDirectory() as folder:
        replaced = {}
        for n, (_, place, package) in enumerate(found):
            own = os.path.join(folder, "{}.go".format(n))
            with open(own, "w", encoding="utf-8") as file:
                file.write(CANARIES.format(package, *names))
            replaced[os.path.join(place, names[0].lower() + "_test.go")] = own
        overlay = os.path.join(folder, "overlay.json")
        with open(overlay, "w", encoding="utf-8") as file:
            json.dump({"Replace": replaced}, file)
        pattern = "-run=^({})$".format("|".join(names))
        own_options = ["-json", "-overlay=" + overlay, pattern, "-count=1", "-vet=off"]
        command = [go, "test", *own_options, *options, *runs, *(path for path, _, _ in found), *rest]
        for event in events(command) if found else ():
            if event.get("Test") in names and event.get("Action") in ENDS:
                ends[names.index(event["Test"])].append(ENDS[event["Action"]])
    # One that ended in fewer packages than there are was not run in some: those ended before it.
    return [each if each and len(each) == len(found) else [*each, "was not run"] for each in ends]


class Ahead(threading.Thread):
    """Compiles the canaries while the tests run. Their programs wait for a line from us before they start."""

    def __init__(self, go: str, options: list[str], rest: list[str], witness: Witness) -> None:
        super().__init__(daemon=True)
        kept = list(without(options))
        self.go, self.rest, self.names = go, rest, witness.names
        self.options = [word for word in kept if not is_package(word, witness)]
        self.asked = [word for word in kept if is_package(word, witness)] or ["."]
        self.folder = tempfile.mkdtemp()
        line, script = os.path.join(self.folder, "line"), os.path.join(self.folder, "wait.sh")
        os.mkfifo(line)
        self.line = os.open(line, os.O_RDWR)
        with open(script, "w", encoding="utf-8") as file:
            file.write('read -r said <{} && test "$said" = start && exec "$@"\n'.format(shlex.quote(line)))
        # One that waits must not keep another one from being compiled.
        self.runs = ("-exec=sh '{}'".format(script), "-p={}".format(MOST + 1))
        self.drawn: list[tuple[str, str, str]] = []
        self.ends: list[list[str]] = []

    def run(self) -> None:
        """Compile them in some of the packages, and run them when they may start."""
        found = list(packages_of(self.go, self.options, self.asked))
        self.drawn = random.sample(found, min(MOST, len(found)))
        self.ends = tried(self.go, self.options, self.rest, self.drawn, self.names, self.runs)

    def end(self, may_start: bool) -> None:
        """Let the programs start, or end them, and wait for their end."""
        os.write(self.line, (b"start\n" if may_start else b"end\n") * MOST)
        self.join()
        os.close(self.line)
        shutil.rmtree(self.folder, ignore_errors=True)


def canaries(go: str, options: list[str], rest: list[str], witness: Witness, ahead: Ahead | None) -> None:
    """Try the runner: in each of some packages one of our tests has to pass, and one to fail."""
    if ahead is not None:
        ahead.end(may_start=True)
        tested = all(path in witness.tested for path, _, _ in ahead.drawn)
        if ahead.drawn and tested and all(map(is_right, ahead.ends, RIGHT)):
            note(ahead.ends, witness)
            return
    drawn = random.sample(sorted(witness.tested), min(MOST, len(witness.tested)))
    kept = [word for word in without(options) if not is_package(word, witness)]
    found = list(packages_of(go, options, drawn)) if drawn else []
    note(tried(go, kept, rest, found, witness.names), witness)


def is_right(ends: list[str], right: str) -> bool:
    """Return whether a canary ended in every package as it has to."""
    return bool(ends) and set(ends) == {right}


def note(ends: list[list[str]], witness: Witness) -> None:
    """Note how the canaries ended."""
    for n, kind in enumerate(KINDS):
        outcome = next((end for end in ends[n] if end != RIGHT[n]), RIGHT[n])
        witness.say(e="canary", kind=kind, name=witness.told[kind], outcome=outcome)


def is_package(word: str, witness: Witness) -> bool:
    """Return whether an argument names packages: by a path, a pattern, or the import path of one that was tested."""
    return not word.startswith("-") and (
        word.startswith(".")
        or "..." in word
        or word in witness.tested
        or os.path.isabs(word)
        or word == "all"
    )


def main(go: str, arguments: list[str]) -> int:
    """Run the tests, then the canaries; the exit code is that of the tests."""
    told = os.environ.get(VARIABLE)
    if told is None or not is_watched(arguments):
        os.execv(go, [go, *arguments])
    # Taken away: what the tests start themselves is not what is being judged.
    del os.environ[VARIABLE]
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    cut = next((n for n, word in enumerate(arguments) if word in ("-args", "--args")), len(arguments))
    options, rest = arguments[1:cut], arguments[cut:]
    witness = Witness(json.loads(told), options)
    witness.say(e="start", runner="go", version="", at=package_at(os.getcwd()))
    own = [go, "test", "-json", *(word for word in options if flag(word) != "json"), *rest]
    ahead = None
    with started(own) as process:
        for line in text(process):
            witness.take(line)
            sys.stdout.flush()
            if ahead is None and witness.tested and not AS_GIVEN & {flag(word) for word in options}:
                ahead = Ahead(go, options, rest, witness)
                ahead.start()
    code = process.returncode
    witness.finish()
    if code >= 0:
        canaries(go, options, rest, witness, ahead)
        witness.say(e="end", exit=code)
    elif ahead is not None:
        ahead.end(may_start=False)
    witness.file.close()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
