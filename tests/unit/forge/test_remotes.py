"""Which repository the address of a git remote means."""

from tests.cases import each_case

from loopwright.adapters.forge import github, gitlab
from loopwright.adapters.forge.api import Remote, parse_remote


@each_case(
    ("address", "host", "path"),
    [
        ("https://github.com/acme/app", "github.com", "acme/app"),
        ("https://github.com/acme/app.git", "github.com", "acme/app"),
        ("https://someone:secret@github.com/acme/app.git/", "github.com", "acme/app"),
        ("git@github.com:acme/app.git", "github.com", "acme/app"),
        ("github.com:acme/app", "github.com", "acme/app"),
        ("ssh://git@GHE.example.com:2222/acme/app.git", "ghe.example.com", "acme/app"),
        ("git@gitlab.com:group/sub/app.git", "gitlab.com", "group/sub/app"),
        ("https://git.example.com:8443/group/sub/app.git", "git.example.com", "group/sub/app"),
        ("git://example.com/a/b", "example.com", "a/b"),
        ("git@[::1]:a/b.git", "::1", "a/b"),
    ],
)
def test_every_form_of_an_address_is_read(address: str, host: str, path: str) -> None:
    assert parse_remote(address) == Remote(host=host, path=path)


@each_case(
    "address",
    ["/srv/app.git", "../app", "file:///srv/app.git", "C:/app", "https://github.com/app", "ext::sh -c x", ""],
)
def test_what_is_no_repository_on_a_host_is_none(address: str) -> None:
    assert parse_remote(address) is None


def test_a_path_does_not_leave_its_place() -> None:
    assert parse_remote("https://github.com/acme/../app") is None


def test_each_host_has_its_interface() -> None:
    assert github.api_url("github.com") == "https://api.github.com"
    assert github.api_url("ghe.example.com") == "https://ghe.example.com/api/v3"
    assert gitlab.api_url("git.example.com") == "https://git.example.com/api/v4"
