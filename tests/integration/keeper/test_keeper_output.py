"""What is kept of the output: whole lines, without secrets, within the limit, and always the end."""

import hashlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.integration.keeper.conftest import MakeSpec, all_lines, keeper_of, text_of
from tests.waiting import eventually_async
from tests.wording_plugin import Wording

from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.errors import CannotRun
from loopwright.keeper import places
from loopwright.keeper.record import Lines, Record
from loopwright.keeper.redact import Redactor, forms_of

MIB = 1024 * 1024
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
KEY_BODY = "MIIEowIBAAKCAQEA75kVqC0aH5qXvDn3c0wJ1RBi8VqQbS7"


def kept_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in (directory / "output").iterdir())


@pytest.mark.capability("C027")
async def test_sixty_megabytes_neither_fill_memory_nor_lose_the_result(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    flood = (
        'import os\nline = (b\'{"type": "assistant", "text": "\' + b\'lorem ipsum \' * 20 + b\'"}\\n\')\n'
        "block = line * 400\n"
        "for _ in range(60 * 1024 * 1024 // len(block)): os.write(1, block)\n"
        "os.write(1, b'{\"type\": \"result\"}\\n')\nopen('all-said', 'w').close()\ninput()"
    )
    spec = make_spec(
        py=flood, stdin="pipe", limits={"output": 8 * MIB}, secrets=("not-in-there", "neither-this")
    )
    await keepers.start(spec)
    keeper, memory, used = keeper_of(spec), 0, 0.0
    while not (spec.cwd / "all-said").exists():
        memory = max(memory, keeper.memory_info().rss)
        used = sum(keeper.cpu_times()[:2])
        await anyio.sleep(0.05)
    await keepers.write(spec.directory, 1, "\n")
    ended = await keepers.wait(spec.directory)
    assert ended.code == 0
    assert (await text_of(keepers, spec))[-1] == '{"type": "result"}'
    assert ended.output_bytes > 60 * 1000 * 1000
    assert kept_bytes(spec.directory) <= 8 * MIB
    assert ended.dropped_bytes == ended.output_bytes - kept_bytes(spec.directory)
    assert memory < 20 * MIB
    # A guard against a crawl, not a benchmark, in processor time: machines that test are busy.
    assert used < 10, f"{ended.output_bytes / used / MIB:.0f} MiB/s"


async def test_a_reader_that_is_overtaken_sees_one_line_about_what_is_missing(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(
        sh="seq 1 5000; read x; seq 5001 40000; echo the end", stdin="pipe", limits={"output": 40_000}
    )
    await keepers.start(spec)
    lines = []
    async for line in keepers.follow(spec.directory):
        lines.append(line)
        if len(lines) == 10:
            await keepers.write(spec.directory, 1, "\n")
            await keepers.wait(spec.directory)
    gaps = [line for line in lines if "left out here" in line.text]
    assert gaps
    assert lines[0].text == "1"
    assert lines[-1].text == "the end"
    numbers = [int(line.text) for line in lines if line.stream == "out" and line.text != "the end"]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 40_000
    assert kept_bytes(spec.directory) <= 40_000
    # From any position on, a reader goes on with exactly what the first one saw.
    for at in (0, 3, len(lines) // 2, lines.index(gaps[0]), len(lines) - 1):
        again = await all_lines(keepers, spec, lines[at].offset)
        assert again == lines[at + 1 :]


async def test_the_line_that_said_done_survives_any_noise_after_it(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(
        sh="seq 1 9999; echo RESULT first; seq 1 9999; echo RESULT last; seq 1 9999",
        done_pattern="^RESULT",
        limits={"output": 20_000},
    )
    await keepers.start(spec)
    texts = await text_of(keepers, spec)
    assert "RESULT last" in texts
    assert texts[-1] == "9999"
    assert kept_bytes(spec.directory) <= 20_000


async def test_a_line_of_many_megabytes_is_cut_visibly_and_the_next_one_is_whole(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(
        py="import os\nfor _ in range(40): os.write(1, b'x' * 1000000)\nos.write(1, b'\\nnext\\n')\ninput()",
        stdin="pipe",
    )
    await keepers.start(spec)
    keeper = keeper_of(spec)
    seen = []
    async for line in keepers.follow(spec.directory):
        seen.append(line.text)
        if line.text == "next":
            assert keeper.memory_info().rss < 24 * MIB
            await keepers.write(spec.directory, 1, "\n")
    assert [len(text) > MIB for text in seen] == [True, False]
    assert seen[0].endswith("[loopwright: this line was too long and is cut here]")
    ended = await keepers.wait(spec.directory)
    assert ended.dropped_bytes == 40_000_000 - MIB


async def test_bytes_that_are_no_text_survive_as_replacement_characters(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh=r"printf 'a\377\000b\r\nc\n'")
    await keepers.start(spec)
    assert await text_of(keepers, spec) == ["a\N{REPLACEMENT CHARACTER}\0b\r", "c"]


@pytest.mark.capability("C108")
async def test_a_secret_written_in_pieces_is_redacted(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(
        sh="printf 'say tops'; sleep 0.2; printf 'ecret-va'; sleep 0.2; echo 'lue now'; echo 'topsecret-value' >&2",
        secrets=("topsecret-value",),
    )
    await keepers.start(spec)
    assert sorted(await text_of(keepers, spec)) == ["[redacted]", "say [redacted] now"]


@pytest.mark.capability("C108")
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("key sk-ant-api03-AbCdEfGhIjKlMnOp_-12 end", "key [redacted] end"),
        ("sk-proj-AbCdEfGhIjKlMnOpQrSt", "[redacted]"),
        ("sk-AbCdEfGhIjKlMnOpQrStUv12", "[redacted]"),
        ("ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", "[redacted]"),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "[redacted]"),
        ("glpat-0123456789abcdefABCD", "[redacted]"),
        ("id=AKIAIOSFODNN7EXAMPLE,", "id=[redacted],"),
        (
            f"sk_live_{LETTERS[:24]} sk_test_{LETTERS[:24]} rk_live_{LETTERS[:24]}",
            "[redacted] [redacted] [redacted]",
        ),
        (f"rk_test_{LETTERS[:24]}", "[redacted]"),
        (f"npm_{LETTERS[:36]}", "[redacted]"),
        (
            f"//registry.host.test/:_authToken=npm_{LETTERS[:36]}",
            "//registry.host.test/:_authToken=[redacted]",
        ),
        (f"pypi-AgEIcHlwaS5vcmc{LETTERS}_-{LETTERS}", "[redacted]"),
        (f"hf_{LETTERS[:34]}", "[redacted]"),
        (f'"a\\nhf_{LETTERS[:34]}"', '"a\\n[redacted]"'),
        (f"gsk_{LETTERS[:52]}", "[redacted]"),
        (f"xai-{LETTERS}{LETTERS[:18]}", "[redacted]"),
        (f"ya29.a0{LETTERS}_-{LETTERS}", "[redacted]"),
        (f"SG.{LETTERS[:22]}.{LETTERS[:43]}", "[redacted]"),
        (f"dop_v1_{'0123456789abcdef' * 4}", "[redacted]"),
        (f"shpat_{'0123456789abcdef' * 2} shpss_{'0123456789ABCDEF' * 2}", "[redacted] [redacted]"),
        (
            f"-----BEGIN PGP PRIVATE KEY BLOCK-----\\n{KEY_BODY}\\n-----END PGP PRIVATE KEY BLOCK-----",
            "[redacted]",
        ),
        ("xoxb-123456789012-abcdefGHIJ", "[redacted]"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer [redacted]"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', '{"authorization": "Basic [redacted]"}'),
        ("bearer abcdef0123456789abcdef", "bearer [redacted]"),
        ("x-api-key: 0123456789abcdef", "x-api-key: [redacted]"),
        ("jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJ-x!", "jwt [redacted]!"),
        (
            f'{{"k":"-----BEGIN PRIVATE KEY-----\\n{KEY_BODY}\\n-----END PRIVATE KEY-----\\n"}}',
            '{"k":"[redacted]\\n"}',
        ),
        ("postgres://app:hunter2@db.example:5432/shop", "postgres://app:[redacted]@db.example:5432/shop"),
        ('"redis://:p@ss,word!@cache:6379"', '"redis://:[redacted]@cache:6379"'),
        ("https://0123456789abcdef0123456789abcdef@sentry.example/7", "https://[redacted]@sentry.example/7"),
        # What only looks a little like it stays as it is.
        ("ssh://git@host.example:22/a and http://localhost:5173/@vite/client", None),
        ("see https://host.example:8443/?mail=me@host.example or file:///tmp/a@b", None),
        ("task-based-risk-assessment of disk-usage-statistics", None),
        ("sk-loading-spinner is a class", None),
        ("task-test-everything-thoroughly", None),
        ("the bearer of extraordinarily-good-tidings", None),
        ("authorization is needed for the endpoint", None),
        ("AKIA is a prefix; eyJ too; ghp_ as well", None),
        ("npm_config_registry npm_lifecycle_event npm_package_dependencies_react_dom_version", None),
        ("pypi-publish and pypi-AgE; xai-style; MSG.payload.header; hf_transfer; gsk_scheduler", None),
        (
            f"shelf_{LETTERS[:34]} is a name; sk_test_mode rk_test_case dop_v1_migration shpat_token ya29.x",
            None,
        ),
        ("a PRIVATE KEY BLOCK is a block of a PRIVATE KEY", None),
        ("test_network_test_ConnectionTimeoutHandlerOfTheShop task_live_configurationloaderofthewhole", None),
        ('if text.startswith("-----BEGIN RSA PRIVATE KEY-----"): abcdefghijklmnopqrstuvwxyz', None),
    ],
)
def test_known_shapes_of_secrets_are_redacted_and_prose_is_not(said: str, kept: str | None) -> None:
    redacted = Redactor([]).redact(said.encode() + b"\n")
    assert redacted.decode() == (said if kept is None else kept) + "\n"


@pytest.mark.parametrize("size", [1, 100_000], ids=["a line", "a long text"])
def test_every_shape_is_found_among_lines_and_in_a_long_text(size: int) -> None:
    before = b"no secret\n" * size
    text = before + f"dop_v1_{'0123456789abcdef' * 4}\n".encode()
    assert Redactor([]).redact(text) == before + b"[redacted]\n"


@pytest.mark.capability("C108")
@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_private_key_over_many_lines_is_redacted_however_it_arrives(step: int, kind: str) -> None:
    text = "\n".join(
        [
            "before",
            f"-----BEGIN {kind}-----",
            KEY_BODY,
            f"+ {KEY_BODY}",
            f"-----END {kind}-----",
            "a long identifier that is_no_key_any_more_at_all",
            "",
        ]
    ).encode()
    lines = Lines(Redactor([]), longest=4096, overlap=64)
    got = b"".join(lines.feed(text[at : at + step]) for at in range(0, len(text), step)) + lines.finish()
    assert KEY_BODY.encode() not in got
    assert got.count(b"[redacted]") == 2
    assert got.endswith(b"is_no_key_any_more_at_all\n")


@pytest.mark.capability("C108")
def test_a_key_that_is_only_spoken_of_or_ends_without_a_word_spoils_nothing_behind_it() -> None:
    event = '{"type":"user","id":"toolu_01abcdefghijklmnop","path":"src/shop/prices/of/everything.py"}'
    spoken = '{"text":"it begins with -----BEGIN RSA PRIVATE KEY-----","id":"toolu_01qrstuvwxyzabcdefgh"}'
    begun = (
        '{"text":"-----BEGIN RSA PRIVATE KEY-----\\n' + KEY_BODY[:20] + '","id":"toolu_01qrstuvwxyzabcdefgh"}'
    )
    more = '{"text":"' + KEY_BODY + '","id":"toolu_01zyxwvutsrqponmlkji"}'
    redactor = Redactor([])
    said = redactor.redact("\n".join((spoken, event, begun, more, *[event] * 5, "")).encode()).decode()
    first, second, third, fourth, *rest = said.splitlines()
    assert (first, second) == (spoken, event)
    assert third == begun.replace(KEY_BODY[:20], "[redacted]")
    assert fourth == more.replace(KEY_BODY, "[redacted]")
    assert rest == [event] * 5
    lines = [
        "-----BEGIN RSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "",
        KEY_BODY,
        "INFO a word between",
        KEY_BODY,
    ]
    after = ["tests/test_of_everything_in_the_shop.py passed"] * 6
    said = redactor.redact("\n".join((*lines, *after, "")).encode()).decode()
    assert KEY_BODY not in said
    assert said.splitlines()[-3:] == after[-3:], "a key that was cut off ends by itself"


@pytest.mark.capability("C108")
def test_a_secret_is_known_in_every_spelling_it_can_have_in_a_line() -> None:
    forms = forms_of(['pass"word\\1', "first line\nsecond line", "ü-umlaut", "abc"])
    redactor = Redactor(forms)
    for spelled in (
        'pass"word\\1',
        'pass\\"word\\\\1',
        "second line",
        "first line\\nsecond line",
        "\\u00fc-umlaut",
    ):
        assert redactor.redact(f"<{spelled}>\n".encode()) == b"<[redacted]>\n"
    assert redactor.redact(b"abc is too short\n") == b"abc is too short\n"


@pytest.mark.capability("C108")
def test_no_part_of_a_secret_is_left_where_a_line_is_cut() -> None:
    secret = "0123456789" * 5
    for lead in range(40, 130):
        for text in ("a" * lead + secret + "b" * 400, "a" * (lead - 40) + secret * 30):
            lines = Lines(Redactor(forms_of([secret])), longest=100, overlap=120)
            whole = f"{text}\nnext\n".encode()
            got = b"".join(lines.feed(whole[at : at + 37]) for at in range(0, len(whole), 37))
            assert not any(byte in b"0123456789" for byte in got), (lead, got)
            assert got.endswith(b"cut here]\nnext\n")


def test_lines_come_out_the_same_however_they_go_in() -> None:
    text = b"one\n\ntwo\r\n" + b"y" * 70 + b"\n" + b"z" * 500 + b"\nlast"
    wanted = None
    for step in (1, 2, 3, 50, 1000):
        lines = Lines(Redactor([]), longest=64, overlap=16)
        got = b"".join(lines.feed(text[at : at + step]) for at in range(0, len(text), step)) + lines.finish()
        wanted = wanted or got
        assert got == wanted
        assert got.count(b"cut here]") == 2
        assert lines.cut_bytes == 70 - 64 + 500 - 64


def test_a_record_counts_and_hashes_what_it_does_not_keep(tmp_path: Path) -> None:
    record = Record(str(tmp_path / "output"), 1000)
    whole = b""
    for n in range(500):
        line = b"o line %d\n" % n
        whole += line
        record.append(line)
    record.append(bulk := b"".join(b"o more %d\n" % n for n in range(5000)))
    record.finish()
    whole += bulk
    kept = sorted((tmp_path / "output").iterdir())
    assert sum(path.stat().st_size for path in kept) <= 1000
    assert record.total == len(whole)
    assert record.dropped_bytes == len(whole) - sum(path.stat().st_size for path in kept)
    assert record.sha256 == hashlib.sha256(whole).hexdigest()
    for path in kept:
        start = int(path.name)
        assert whole[start : start + path.stat().st_size] == path.read_bytes()
    assert whole.endswith(kept[-1].read_bytes())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"mounting a small disk is not permitted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


async def write_much(keepers: ProcessKeepers, directory: Path) -> None:
    for n in range(300):
        await keepers.write(directory, n, "x" * 5000)


async def test_a_full_disk_stops_neither_the_run_nor_its_exit_file(
    keepers: ProcessKeepers, make_spec: MakeSpec, small_disk: Path, wording: Wording
) -> None:
    spec = make_spec(
        sh="seq 1 400000; echo RESULT; echo over >&2; touch all-said; cat",
        stdin="pipe",
        directory=small_disk / "run",
    )
    await keepers.start(spec)
    await eventually_async((spec.cwd / "all-said").exists)
    with pytest.raises(CannotRun, match="could not be logged"):
        await write_much(keepers, spec.directory)
    ended = await keepers.end(spec.directory)
    assert ended.ended_by == "asked"
    wording(ended.error)
    assert ended.dropped_bytes > 1_000_000
    assert ended.output_bytes == sum(len(str(n)) + 3 for n in range(1, 400_001)) + len(
        "o RESULT\n" + "e over\n"
    )
    texts = await text_of(keepers, spec)
    assert texts[0] == "1"
    assert {"RESULT", "over", "400000"} <= set(texts)
    assert [text for text in texts if "left out here" in text]


def test_a_gap_in_a_record_begins_at_a_whole_line_after_a_full_disk(small_disk: Path) -> None:
    record = Record(str(small_disk / "output"), 64 * MIB)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (600 * 1024))
    lines = [b"o %06d\n" % n for n in range(100_000)]
    for line in lines:
        record.append(line)
    ballast.unlink()
    record.retry()
    record.append(b"o after\n")
    record.finish()
    kept = sorted((small_disk / "output").iterdir())
    assert len(kept) == 2
    whole = b"".join(lines) + b"o after\n"
    for path in kept:
        content = path.read_bytes()
        assert content.endswith(b"\n")
        assert content.startswith(b"o ")
        assert whole[int(path.name) :].startswith(content)
    assert record.dropped_bytes == len(whole) - sum(path.stat().st_size for path in kept)
    assert record.dropped_bytes > 0
    assert whole.endswith(kept[-1].read_bytes())


LINES = 70


async def test_following_is_prompt(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="while read x; do sleep 0.02; echo $x; done", stdin="pipe")
    await keepers.start(spec)
    begun = time.monotonic()
    await keepers.write(spec.directory, 0, "0\n")
    async for line in keepers.follow(spec.directory):
        n = int(line.text) + 1
        if n <= LINES:  # a closed stdin takes no more
            await keepers.write(spec.directory, n, f"{n}\n", close=n == LINES)
    # The net below the socket turns once a second: without the nudges this would take more than a minute.
    assert time.monotonic() - begun < LINES


def test_the_exit_file_needs_no_room_on_the_disk(small_disk: Path) -> None:
    places.reserve(str(small_disk), places.EXIT_RESERVE, places.EXIT_RESERVE_BYTES)
    with pytest.raises(OSError, match="No space"):
        (small_disk / "ballast").write_bytes(b"\0" * 2 * MIB)
    places.write_exit(str(small_disk), {"error": "x" * 4000})
    assert json.loads((small_disk / "exit.json").read_bytes()) == {"error": "x" * 4000}
