from __future__ import annotations

import hashlib
import importlib.util
import lzma
import os
import subprocess
import sys
import threading
from base64 import b64encode
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, get_args

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from longspan.simulator.base import tokens
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tokens import EncodingName, Tokenizer

ROOT = Path(__file__).parents[2]
NAMES: tuple[EncodingName, ...] = get_args(EncodingName)


@pytest.fixture(scope="module", params=NAMES)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer(request.param)


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unload all encodings, as in a new process."""
    monkeypatch.setattr(tokens, "encodings", {})


@pytest.fixture
def made(unloaded: None, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What tiktoken is asked to make encodings of."""
    arguments: list[dict[str, Any]] = []
    make = tiktoken.Encoding

    def making(name: str, **given: Any) -> tiktoken.Encoding:
        arguments.append({"name": name, **given})
        return make(name, **given)

    monkeypatch.setattr(tiktoken, "Encoding", making)
    return arguments


@pytest.mark.parametrize("name", NAMES)
def test_the_encodings_are_tiktokens(name: EncodingName, made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def pinned(address: str, expected_hash: str) -> str:
        return expected_hash

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", pinned)
    theirs = openai_public.ENCODING_CONSTRUCTORS[name]()
    Tokenizer(name)
    (ours,) = made
    file = b"".join(b"%s %d\n" % (b64encode(token), rank) for token, rank in ours["mergeable_ranks"].items())
    digest = hashlib.sha256(file).hexdigest()
    assert ours | {"mergeable_ranks": digest} == {name: value for name, value in theirs.items() if name != "explicit_n_vocab"}
    assert digest in (ROOT / "NOTICE").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("cl100k_base", "", []),
        ("cl100k_base", "hello world", [15339, 1917]),
        ("cl100k_base", "tiktoken is great!", [83, 1609, 5963, 374, 2294, 0]),
        ("cl100k_base", "antidisestablishmentarianism", [519, 85342, 34500, 479, 8997, 2191]),
        ("o200k_base", "hello world", [24912, 2375]),
        ("o200k_base", "tiktoken is great!", [83, 8251, 2488, 382, 2212, 0]),
    ],
)
def test_known_texts(name: EncodingName, text: str, expected: list[int]) -> None:
    tokenizer = Tokenizer(name)
    assert tokenizer.encode(text) == expected
    assert tokenizer.count(text) == len(expected)
    assert tokenizer.decode(expected) == text


@given(text=st.text())
@pytest.mark.parametrize("name", NAMES)
def test_counts_and_decodes_what_it_encodes(name: EncodingName, text: str) -> None:
    tokenizer = Tokenizer(name)
    encoded = tokenizer.encode(text)
    assert tokenizer.count(text) == len(encoded)
    assert tokenizer.decode(encoded) == text


@settings(max_examples=500)
@given(text=st.text(st.characters(max_codepoint=127) | st.sampled_from(" \t\r\n/'.,sStTreLLve09Aa"), max_size=60) | st.text())
@pytest.mark.parametrize("name", NAMES)
def test_remembered_pieces_have_the_tokens_of_the_text(name: EncodingName, text: str) -> None:
    assert Tokenizer(name).count_pieces(text) == Tokenizer(name).count(text)


def test_pieces_that_are_not_remembered_and_long_text_are_counted_too(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PIECES", 0)
    assert tokenizer.count_pieces("an unheard-of zxqvword") == tokenizer.count("an unheard-of zxqvword")
    assert tokenizer.count_pieces("ab " * 50_000) == tokenizer.count("ab " * 50_000)


def test_special_tokens_are_ordinary_text(tokenizer: Tokenizer) -> None:
    text = "<|endoftext|><|endofprompt|>"
    special = set(tokens.encodings[tokenizer.name].encode(text, allowed_special="all"))
    assert special.isdisjoint(tokenizer.encode(text))
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_lone_surrogates_count_as_the_replacement_character(tokenizer: Tokenizer, text: str) -> None:
    replaced = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    assert tokenizer.encode(text) == tokenizer.encode(replaced)
    assert tokenizer.count(text) == tokenizer.count(replaced)


def test_half_a_character_decodes_to_the_replacement_character(tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode("\U00013080")
    assert len(encoded) > 1
    assert "\ufffd" in tokenizer.decode(encoded[:1])


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000"])
def test_a_megabyte_of_white_space_is_counted(tokenizer: Tokenizer, blank: str) -> None:
    text = "before" + blank * 1_200_000 + "after"
    encoded = tokenizer.encode(text)
    assert 0 < tokenizer.count(text) == len(encoded)
    assert tokenizer.decode(encoded) == text


WORDS = st.sampled_from(
    ["word", "Don't", "it'S", "漢字", "e\u0301", "é", "İ", "12345", "!?", "/", "\ud800", "\U00013080", "_", "\x1c", "ſ"]
)
BLANKS = st.sampled_from([" ", " ", "  ", "\n", "\r\n", "\t", "\u3000", "\xa0", "\x1c", "\u2028", ""])
TEXTS = st.lists(st.one_of(WORDS, BLANKS, st.characters()), min_size=10, max_size=120).map("".join)


@pytest.mark.parametrize("name", NAMES)
@given(text=TEXTS, piece=st.integers(2, 12))
def test_a_text_counted_in_pieces_has_the_tokens_of_the_whole(name: EncodingName, text: str, piece: int) -> None:
    tokenizer = Tokenizer(name)
    whole = tokens.encodings[name].encode_ordinary(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tokens, "PIECE", piece)
        assert len(list(tokens.split_pieces(f"{text} word end"))) > 1
        assert tokenizer.encode(text) == whole
        assert tokenizer.count(text) == len(whole)


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text("ab漢!1\n", min_size=30, max_size=100), longest=st.integers(3, 12))
def test_a_text_without_spaces_is_cut_and_is_still_the_text(name: EncodingName, text: str, longest: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tokens, "PIECE", 2)
        patched.setattr(tokens, "LONGEST", longest)
        encoded = Tokenizer(name).encode(text)
        assert max(map(len, tokens.split_pieces(text))) <= longest
    assert Tokenizer(name).decode(encoded) == text


def test_a_cut_where_there_is_no_space_changes_a_count_by_hardly_anything(tokenizer: Tokenizer) -> None:
    text = b64encode(Random(1).randbytes(3 * tokens.LONGEST)).decode()
    whole = len(tokens.encodings[tokenizer.name].encode_ordinary(text))
    assert abs(tokenizer.count(text) - whole) <= len(text) // tokens.LONGEST * 3


def test_what_is_passed_to_tiktoken_at_once_is_short() -> None:
    assert max(map(len, tokens.split_pieces("hello world " * 100_000))) <= tokens.PIECE
    assert max(map(len, tokens.split_pieces("x" * 2_000_000))) == tokens.LONGEST
    assert list(tokens.split_pieces("x" * tokens.LONGEST)) == ["x" * tokens.LONGEST]


@pytest.mark.parametrize("name", ["", "gpt2", "CL100K_BASE", "cl100k_base/../x", None])
def test_an_unknown_name_is_refused(name: Any) -> None:
    with pytest.raises(InputError) as caught:
        Tokenizer(name)
    assert str(caught.value) == f"unknown tokenizer {name!r}; choose one of cl100k_base, o200k_base"


def test_the_default_is_cl100k() -> None:
    assert Tokenizer().name == "cl100k_base"
    assert repr(Tokenizer("o200k_base")) == "Tokenizer('o200k_base')"


def test_many_threads_load_once(made: list[dict[str, Any]]) -> None:
    together = threading.Barrier(8)
    counts = []

    def work() -> None:
        together.wait()
        counts.append(Tokenizer().count("hello world"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [2] * 8
    assert [each["name"] for each in made] == ["cl100k_base"]


def test_works_without_a_network_or_a_cache(tmp_path: Path) -> None:
    code = """
import socket

def refuse(*args, **kwargs):
    raise AssertionError("the network was used")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from longspan.simulator.base.tokens import Tokenizer
print(Tokenizer("cl100k_base").count("hello world"), Tokenizer("o200k_base").count("hello world"))
"""
    poisoned = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"], "http://127.0.0.1:9")
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "SYSTEMROOT"}}
    environment = {**kept, **poisoned, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("2 2\n", "", 0)
    assert [path.name for path in tmp_path.iterdir()] == [".cache"]


def test_importing_the_module_does_not_import_tiktoken() -> None:
    code = "import sys, longspan.simulator.base.tokens; print('tiktoken' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture(scope="module")
def packer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pack_ranks", ROOT / "scripts" / "pack_ranks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_packer_writes_what_the_module_reads(packer: ModuleType) -> None:
    ranks = b"IQ== 0\nAA== 1\naGVsbG8= 2\n"
    assert tokens.unpack_tokens(packer.pack(ranks)) == [b"!", b"\0", b"hello"]
    assert lzma.decompress(packer.pack(ranks)) == b"\x01!\x01\x00\x05hello"


@pytest.mark.parametrize("ranks", [b"IQ== 1\n", b"IQ== 0\nAA== 2\n", b"IQ== 0\nAA== 0\n", b"!! 0\n"])
def test_the_packer_refuses_ranks_that_it_cannot_restore(packer: ModuleType, ranks: bytes) -> None:
    with pytest.raises(ValueError, match=r"rank|base64|padding"):
        packer.pack(ranks)


SPACES = st.text(alphabet=" \n\t\r\x0b\x1c\x85\xa0\u2003\u3000", max_size=4)
SIGNS = st.text(alphabet="aZ\u00e9\u4e2d19'\u2019\"/.,-\ud83d\ude00s", max_size=4)


LINE = st.lists(st.one_of(SIGNS, SPACES, st.just(" ")), max_size=12).map("".join)


@settings(max_examples=500)
@given(st.lists(LINE, min_size=1, max_size=5))
def test_lines_count_as_their_text_unless_one_begins_with_a_space_or_a_slash(tokenizer: Tokenizer, texts: list[str]) -> None:
    """`Filler` sums what it counted line by line."""
    lines = [f"{line}\n" for text in texts if (line := " ".join(text.split()).lstrip("/").lstrip())]
    assert sum(map(tokenizer.count, lines)) == tokenizer.count("".join(lines))
