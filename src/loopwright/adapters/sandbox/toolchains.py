"""What of the user's HOME a contained run can read: tool chains and what they need, never documents or secrets."""

from typing import Final

SHOWN: Final = (
    # Who commits, and where packages come from.
    ".gitconfig", ".config/git", ".npmrc", ".yarnrc", ".yarnrc.yml", ".config/pip", ".pip", ".config/uv",
    ".config/pypoetry", ".condarc", ".bunfig.toml", ".m2", ".gradle", ".sbt", ".ivy2", ".nuget", ".config/NuGet",
    ".bundle", ".gem", ".composer", ".config/composer", ".config/go",
    # Versions of languages.
    ".tool-versions", ".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".nvm", ".fnm", ".volta", ".asdf", ".sdkman",
    ".config/mise", ".local/share/mise", ".local/share/fnm", ".local/share/rtx", ".proto",
    # Languages with their packages.
    ".cargo", ".rustup", "go", ".bun", ".deno", ".dotnet", ".mix", ".hex", ".opam", ".stack", ".cabal", ".ghcup",
    ".elan", ".julia", ".pub-cache", "miniconda3", "anaconda3", "miniforge3", ".conda", ".nix-profile", ".npm",
    ".npm-packages", ".npm-global",
    # Installed programs.
    ".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx", ".local/share/pnpm", ".local/share/claude",
    ".local/share/pypoetry", ".local/pipx", ".local/state/nix", "bin",
    # Downloads that tests start from: browsers, hooks, compilers' headers.
    ".cache/ms-playwright", ".cache/puppeteer", ".cache/Cypress", ".cache/pre-commit", ".cache/node-gyp",
    ".cache/electron", ".cache/huggingface", ".cache/torch",
)  # fmt: skip
"""Relative to HOME. What is hidden from every run stays hidden also where it lies below one of these."""
