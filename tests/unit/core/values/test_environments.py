"""What a plan keeps of the environment of the process that submitted it."""

from loopwright.core.values.environments import captured, recorded


def test_a_plan_keeps_places_and_named_variables_and_only_the_names_of_secrets() -> None:
    env = {"PATH": "/bin", "LC_ALL": "C", "TOKEN": "t", "COLOR": "red", "OTHER": "x"}
    found = captured(
        env,
        host_id="host",
        submitter="run",
        secret=("TOKEN", "COLOR", "PATH", "ABSENT"),
        plain=("COLOR",),
        programs={"make": "/bin/make"},
    )
    assert found.values == {"PATH": "/bin", "LC_ALL": "C", "COLOR": "red"}
    assert found.secrets == ("TOKEN",)
    assert (found.host_id, found.submitter, found.programs) == ("host", "run", {"make": "/bin/make"})


def test_a_recorded_environment_has_no_secret_and_nothing_of_a_home() -> None:
    env = {
        "PATH": "/bin", "HOME": "/home/me", "HTTP_PROXY": "http://me:secret@proxy", "NO_PROXY": "localhost",
        "LOOPWRIGHT_AGENT": "codex", "LOOPWRIGHT_HOME": "/data", "LOOPWRIGHT_DATABASE": "postgresql://x",
        "API_KEY": "swordfish", "REGION": "eu", "OTHER": "x",
    }  # fmt: skip
    found = recorded(env, host_id="h", secret=("API_KEY", "REGION"), plain=("REGION",))
    assert found.recorded
    assert found.secrets == ("API_KEY",)
    assert set(found.values) == {"PATH", "HOME", "NO_PROXY", "LOOPWRIGHT_AGENT", "REGION"}
