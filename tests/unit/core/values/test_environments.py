"""What a plan keeps of the environment of the process that submitted it."""

from loopwright.core.values.environments import captured


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
