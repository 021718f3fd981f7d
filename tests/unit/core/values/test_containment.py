"""What programs say when a sandbox refuses them something."""

from tests.cases import each_case

from loopwright.core.values.containment import Refused, refusals

SAID = {
    "touch: cannot touch '/etc/made': Read-only file system": ("write", "/etc/made"),
    "mkdir: cannot create directory ‘/opt/made’: Read-only file system": ("write", "/opt/made"),
    "/bin/sh: 1: cannot create /etc/made: Read-only file system": ("write", "/etc/made"),
    "OSError: [Errno 30] Read-only file system: '/srv/data/x.db'": ("write", "/srv/data/x.db"),
    "Error: EROFS: read-only file system, open '/srv/x'": ("write", "/srv/x"),
    "open /go/pkg/mod/cache/lock: read-only file system": ("write", "/go/pkg/mod/cache/lock"),
    "failed to open `/u/.cargo/registry/x`: Read-only file system (os error 30)": (
        "write",
        "/u/.cargo/registry/x",
    ),
    '{"output":"touch: cannot touch \'/etc/made\': Read-only file system\\n"}': ("write", "/etc/made"),
    "sh: 1: cannot create link/made: Read-only file system": ("write", None),
    "cannot write: Read-only file system": ("write", None),
    "cat: /u/data/words: No such file or directory": ("missing", "/u/data/words"),
    "FileNotFoundError: [Errno 2] No such file or directory: '/u/data'": ("missing", "/u/data"),
    "curl: (6) Could not resolve host: example.invalid": ("network", None),
    "OSError: [Errno 101] Network is unreachable": ("network", None),
    "getaddrinfo EAI_AGAIN registry.example.invalid": ("network", None),
}


@each_case("line", SAID)
def test_a_refusal_is_read_with_its_path(line: str) -> None:
    kind, path = SAID[line]
    assert list(refusals([line])) == [Refused(kind=kind, path=path)]  # type: ignore[arg-type]


def test_other_words_are_no_refusal() -> None:
    assert list(refusals(["AssertionError: 1 != 2", "permission denied: /etc/shadow", ""])) == []
