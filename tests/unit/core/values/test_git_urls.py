"""Only addresses that git reaches over https or ssh are cloned."""

from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.core.values.git_urls import clone_name


@each_case(
    "url, name",
    [
        ("https://forge.example/acme/app.git", "app"),
        ("https://forge.example:8443/acme/sub/my.app", "my-app"),
        ("ssh://git@forge.example/acme/app.git", "app"),
        ("ssh://forge.example:2222/~me/app", "app"),
        ("git@forge.example:acme/app.git", "app"),
    ],
)
def test_an_address_has_one_folder(url: str, name: str) -> None:
    assert clone_name(url).rpartition("-")[0] == name
    assert clone_name(url) != clone_name(f"{url}x")


@each_case(
    "url",
    [
        "-uhttps://forge.example/acme/app",
        "--upload-pack=touch x",
        "ext::sh -c touch% x",
        "ext::https://forge.example/acme/app",
        "file:///etc",
        "file:/etc",
        "http://forge.example/acme/app",
        "git://forge.example/acme/app",
        "https://me:secret@forge.example/acme/app",
        "https://token@forge.example/acme/app",
        "https://-oProxyCommand=x/acme/app",
        "ssh://-oProxyCommand=x/acme/app",
        "ssh://git@-oProxyCommand=x/acme/app",
        "-oProxyCommand=x@forge.example:acme/app",
        "git@-oProxyCommand=x:acme/app",
        "git@forge.example:-x/app",
        "https://forge.example/acme/../app",
        "https://forge.example/acme//app",
        "https://forge.example/",
        "https://forge.example/acme/app?x=1",
        "https://forge.example/acme/app\n",
        "https://forge.example/acme/a b",
        "/srv/app",
        "./app",
        "",
    ],
)
def test_any_other_address_is_refused(url: str) -> None:
    with raises_code("git_url_not_allowed"):
        clone_name(url)
