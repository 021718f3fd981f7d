"""Check a project's own prompt templates, before an agent is paid to read them."""

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.environment import user_env
from loopwright.config.nearest import did_you_mean
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.templates import FOLDER, ROLES, own_path, replaced
from loopwright.prompts import packaged
from loopwright.services.homes.context import Place


async def check_prompts(repository: GitRepository, sha: str, place: Place) -> None:
    """Raise `BadConfig` with every problem that a commit's templates have, each with its file and line."""
    folder = "/".join(filter(None, (place.subfolder, FOLDER)))
    said = await repository.git.run(
        *("ls-tree", "-z", "--name-only", "--full-tree", f"{sha}:{folder}"),
        env=user_env(),
        cwd=place.root,
        ok=(0, 128),
    )
    names = [name for name in said.text.split("\0") if name] if not said.code else []
    if not names:
        return
    paths = {own_path(place.subfolder, role): role for role in ROLES}
    found = await repository.files_at(sha, list(paths))
    wrong = [_unknown(path) for name in names if (path := f"{folder}/{name}") not in found]
    for path, content in found.items():
        try:
            replaced(packaged(paths[path]), path, content)
        except BadConfig as problem:
            wrong.append(problem)
    if wrong:
        hints = dict.fromkeys(one.hint for one in wrong if one.hint)
        raise BadConfig("\n".join(map(str, wrong)), code="prompt_template_wrong", hint="; ".join(hints))


def _unknown(path: str) -> BadConfig:
    guess = did_you_mean(path.rpartition("/")[2].removesuffix(".md"), ROLES)
    files = ", ".join(f"{role}.md" for role in ROLES)
    return BadConfig(
        f"{path}: no agent reads this file{guess}",
        code="prompt_template_unknown",
        hint=f"rename or delete it; the templates are {files}",
    )
