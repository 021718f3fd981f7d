"""The environment that an agent gets: a short list of names, never simply ours.

Our own environment may carry secrets of other tools, markers of an agent that started us (which change how a
nested agent behaves), and git variables that point at somebody else's repository.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from loopwright.core.values.errors import BadConfig
from loopwright.ports import Invocation

ALLOWED: Final = frozenset(
    {
        "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ",
        "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
        "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    }
)  # fmt: skip
"""TMPDIR is missing on purpose: every run has one of its own."""

_ALLOWED_SHAPE: Final = re.compile(r"LC_[A-Z]+")
_FORBIDDEN: Final = re.compile(
    r"LOOPWRIGHT_.*|CLAUDECODE|CLAUDE_CODE_ENTRYPOINT|CLAUDE_CODE_SSE_PORT|GIT_DIR|GIT_WORK_TREE|GIT_INDEX_FILE"
)
_SECRET_NAME: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH(?!ORS?(?:_|$))|HEADER|COOKIE|DSN|WEBHOOK", re.IGNORECASE
)
"""The author of a commit (GIT_AUTHOR_NAME) is no secret, and stands in every log."""
_PLAIN: Final = re.compile(r"(?:~|\.{1,2})?/\S*|[a-z][a-z0-9+.-]*://[^\s/:@?#]+(?::[0-9]+)?/?")
"""A path, or an address with nothing but a host and a port in it."""
_PASSWORD: Final = re.compile(r"://[^\s/:@]*:([^\s/?#]+)@")
_HEADER: Final = re.compile(
    r"^[A-Za-z0-9-]+:[ \t]+(?:Bearer |Basic |Token )?(\S.*)$", re.MULTILINE | re.IGNORECASE
)
_SHORTEST: Final = 8
"""A shorter value is a word of the language more often than a secret."""


def agent_environment(
    host_env: Mapping[str, str],
    invocation: Invocation | None = None,
    extra_names: Sequence[str] = (),
    set_values: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the whole environment of an agent's or a gate's process; later sources win over earlier ones.

    From the host come the allow-list, the names that the adapter needs and the names that the user listed;
    then what the adapter sets, and last what the harness sets itself.
    """
    renamed = invocation.renamed if invocation else {}
    for name in extra_names:
        if _FORBIDDEN.fullmatch(name):
            raise BadConfig(
                f"the variable {name} is never given to agents",
                code="agent_variable_forbidden",
                hint=f"remove {name} from `environment`",
            )
    wanted = {*ALLOWED, *(invocation.inherit if invocation else ()), *extra_names}
    env = {
        name: value
        for name, value in host_env.items()
        if (name in wanted or _ALLOWED_SHAPE.fullmatch(name)) and not _FORBIDDEN.fullmatch(name)
    }
    for name, source in renamed.items():
        if not host_env.get(source):
            raise BadConfig(
                f"the variable {source}, which an account takes its {name} from, is not set",
                code="agent_variable_missing",
                hint=f"set {source} where Loopwright is started, or take it out of the account's `variables`",
            )
        env[name] = host_env[source]
    return {**env, "TERM": "dumb", **(invocation.env if invocation else {}), **(set_values or {})}


def secret_values(env: Mapping[str, str], given: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the values that must not appear in stored output, longest first.

    Those are the values of variables with the name of a secret, and of all that the user listed (`given`) unless they
    are plain paths or addresses; and what stands alone in a value: the password of an address, the value of a header.
    """
    found: set[str] = set()
    for name, value in env.items():
        listed = name in given and name not in ALLOWED and not _PLAIN.fullmatch(value)
        if listed or _SECRET_NAME.search(name):
            found.update((value, *(said.rstrip() for said in _HEADER.findall(value))))
        found.update(_PASSWORD.findall(value))
    long_enough = (value for value in found if len(value) >= _SHORTEST)
    return tuple(sorted(long_enough, key=lambda value: (-len(value), value)))
