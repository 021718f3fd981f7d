"""One set of settings out of all layers, each value with its origin."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loopwright.config import layers as layer
from loopwright.config.home import check_platform, default_home, expand, shorten, user_file
from loopwright.config.layers import Layer, Level
from loopwright.config.nearest import did_you_mean
from loopwright.config.settings import Setting, Values, setting_of, settings
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.ports import PlannedWork

DEFAULT_ORIGIN = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    """One line of `config show`."""

    key: str
    value: Any
    """As it would be written in a file; passwords are left out."""
    origin: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that are in force, and where each came from."""

    values: Values
    origins: Mapping[str, str]

    def origin(self, key: str) -> str:
        """Return where the value of a dotted key was set."""
        if setting_of(key) is None:
            raise BadConfig(f"{key}: unknown setting{did_you_mean(key, settings())}", code="setting_unknown")
        return self.origins.get(key, DEFAULT_ORIGIN)

    def policy(self) -> Policy:
        """Return what a plan is dispatched with."""
        return self.values.policy()

    @property
    def gates(self) -> tuple[GateCommand, ...]:
        """The gates in force, in order."""
        return self.values.gates

    @property
    def home(self) -> Path:
        """The folder with the database, workspaces and run files."""
        if self.values.home is None:
            raise BadConfig(
                "No home is known.", code="no_home_folder", hint="Set LOOPWRIGHT_HOME to an absolute path."
            )
        return self.values.home

    def shown(self) -> tuple[ShownSetting, ...]:
        """Return every setting with its value and origin, for people and for JSON."""
        keys = [*settings(), *sorted(key for key in self.origins if key.startswith("agents."))]
        return tuple(self._show(setting) for key in keys if (setting := setting_of(key)) is not None)

    def _show(self, setting: Setting) -> ShownSetting:
        value = setting.kind.show(self.get(setting.key))
        if setting.key == "database":
            value = without_password(value)
        if setting.key == "notify":
            value = [f"{one.partition('://')[0]}://***" for one in value]
        return ShownSetting(
            key=setting.key,
            value=value,
            origin=self.origin(setting.key),
            description=setting.description,
        )

    def get(self, key: str) -> Any:
        """Return the value of a dotted key."""
        if setting_of(key) is None:
            raise BadConfig(f"{key}: unknown setting{did_you_mean(key, settings())}", code="setting_unknown")
        value: Any = self.values
        parts = key.split(".")
        if len(parts) == 5:
            # An account's are kept apart from the options that its agent is given.
            value, parts = self.values.accounts, [parts[1], *parts[3:]]
        for part in parts:
            value = value.get(part) if isinstance(value, Mapping) else getattr(value, part)
        return value


def without_password(url: str) -> str:
    """Return a URL with its password, if any, replaced by stars."""
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if not at or ":" not in user:
        return url
    return f"{scheme}{mark}{user.partition(':')[0]}:***@{host}{slash}{path}"


def resolve(layers: Iterable[Layer]) -> Settings:
    """Combine layers, the highest level winning key by key; raise `BadConfig` with every problem."""
    ordered = sorted(layers, key=lambda each: each.level)
    problems = [problem for each in reversed(ordered) for problem in each.problems]
    if problems:
        raise BadConfig(
            "\n".join(problems),
            code="settings_wrong",
            hint="fix what is named; `loopwright config schema` prints every setting",
        )
    written: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for each in ordered:
        written |= each.values
        origins |= each.origins
    return Settings(values=Values.read(written), origins=origins)


def load(
    env: Mapping[str, str],
    *,
    platform: str,
    flags: Mapping[str, Any] | None = None,
    plan: PlannedWork | None = None,
    plan_name: str = "",
    loop: str = "",
    project_text: str | None = None,
    project_name: str = layer.PROJECT_FILE,
    ours: frozenset[str] = frozenset(),
) -> Settings:
    """Gather every layer that applies and resolve them.

    `project_text` is the text of loopwright.toml: of the plan's base commit inside a plan, of HEAD outside one, or of
    the file that the user named. The user's own file is found through `env`. `loop` is the work source of the loop,
    from the top of the repository: both files may have settings for it.
    """
    check_platform(platform)
    found = [layer.from_environment(env, ours=ours), *_user_layers(env, loop)]
    if plan is not None and plan.baseline:
        found.append(layer.from_baseline(plan.baseline, plan_name))
    if flags is not None:
        found.append(layer.from_flags(flags))
    if plan is not None:
        found.append(layer.from_plan(plan.settings, plan_name, gates=plan.gates, lines=plan.lines))
    if project_text is not None:
        found.append(layer.from_toml(project_text, project_name, Level.PROJECT))
        # After the user's: of two that speak of the same loop the project's file wins, as everywhere.
        found.append(layer.loop_from_toml(project_text, project_name, loop))
    settled = resolve(found)
    home = settled.values.home
    home = default_home(env, platform) if home is None else expand(home, env)
    return replace(settled, values=replace(settled.values, home=home))


def _user_layers(env: Mapping[str, str], loop: str) -> tuple[Layer, ...]:
    path = user_file(env)
    if path is None or not path.is_file():
        return ()
    name = shorten(path, env)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as broken:
        return (Layer(level=Level.USER, problems=(f"{name}: cannot be read: {broken}",)),)
    return layer.from_toml(text, name, Level.USER), layer.loop_from_toml(text, name, loop)
