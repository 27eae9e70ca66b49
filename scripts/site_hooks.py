"""The hooks of mkdocs that make the site from README.md, docs/ and the program: `mkdocs build --strict`.

The first page is README.md, and docs/contents.md lists the pages in the order of the navigation. The references of commands and of names in
Python, and the board of results, are generated. Links that leave docs/ lead to the repository.
"""

from __future__ import annotations

import inspect
import logging
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]  # mkdocs loads hooks as files

from scripts.board import make_board  # noqa: E402

import longspan  # noqa: E402
from longspan.simulator.base.installed import find_entry_points  # noqa: E402
from longspan.simulator.cli import whole_app  # noqa: E402

LINK: Final = re.compile(r'(?P<before>\]\(|<img src=")(?P<path>(?![a-z]+:|#)[^)"#\s]+)')
FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
STYLE: Final = """\
.md-grid { max-width: 72rem; }
.md-typeset table:not([class]):has(th:nth-child(4)) th:first-child { min-width: 9rem; }
"""
BOARD_STYLE: Final = "<style>.md-typeset td:nth-child(2) { min-width: 12rem; }</style>"
SECTIONS: Final = {"start": "Start", "guides": "Guides", "reference": "Reference", "internals": "Internals"}
WIDTH: Final = 100
GENERATED: Final = ("reference/commands.md", "reference/python-api.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of each folder in the order of the table in docs/contents.md. Pages that it does not link to come last."""
    docs = Path(config.docs_dir)
    table = (docs / "contents.md").read_text("utf-8").partition("## Where next")[2]
    order = re.findall(r"\]\(([\w/-]+\.md)\)", table)
    config.nav = [{"longspan": ["index.md", "contents.md"]}]
    for folder, title in SECTIONS.items():
        pages = sorted(path.relative_to(docs).as_posix() for path in (docs / folder).rglob("*.md"))
        pages += [page for page in GENERATED if page.startswith(folder)]
        config.nav.append({title: sorted(pages, key=lambda page: order.index(page) if page in order else len(order))})
    config.nav.append({"Board": ["board.md"]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README.md and the generated pages, and leave notebooks to the repository."""
    board, rejected = make_board()
    for path, why in rejected:
        logging.getLogger("mkdocs.board").warning("%s: rejected: %s", path, why)  # which fails a strict build
    contents = {
        "index.md": "---\nhide: [navigation]\n---\n" + (ROOT / "README.md").read_text("utf-8"),
        "board.md": board + BOARD_STYLE,
        "reference/commands.md": "\n".join(describe_commands()),
        "reference/python-api.md": "\n".join(describe_api()),
        "site.css": STYLE,
    }
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
    for name, content in contents.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Correct the links of a page: of README.md, which is elsewhere in the repository, and those to files outside docs/."""
    here = {"index.md": "README.md", "board.md": "results/README.md"}.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def correct(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link["path"]))
        path = "index.md" if target == "README.md" else target.removeprefix("docs/")
        if path != target and files.get_file_from_path(path):
            return link["before"] + posixpath.relpath(path, posixpath.dirname(page.file.src_uri) or ".")
        if not (ROOT / target).exists():
            return link[0]  # mkdocs reports it
        return f"{link['before']}{config.repo_url.rstrip('/')}/{'tree' if (ROOT / target).is_dir() else 'blob'}/HEAD/{target}"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(correct, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(correct, markdown[end:])])


# ---- the commands


def describe_commands() -> Iterator[str]:
    """Yield the lines of a page with all commands and their options."""
    yield "# Commands\n\nAll commands of this version, with their options. `longspan COMMAND --help` prints the same.\n"
    app: Any = typer.main.get_command(whole_app())
    for name, group in app.commands.items():
        for inner, command in getattr(group, "commands", {"": group}).items():
            if not command.hidden:
                yield from _describe_command(f"longspan {name} {inner}".strip(), command)


def _describe_command(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=name)
    yield f"## {name}\n\n{_unwrap(command.help or '')}\n"
    yield f"```\n{' '.join([name, *command.collect_usage_pieces(context)])}\n```\n"
    records = [param.get_help_record(context) for param in command.params if not getattr(param, "hidden", False)]
    if rows := [_write_row(*record) for record in records if record]:
        yield from ["| argument or option | meaning |", "| --- | --- |", *rows, ""]


def _write_row(names: str, text: str) -> str:
    """Return an option's row. A group of entry points in braces stands for the names that are installed."""
    text = re.sub(r"\{(longspan\.\w+)\}", lambda group: ", ".join(find_entry_points(group[1])), text)
    return f"| `{names}` | {_escape(' '.join(text.split()))} |"


def _escape(cell: str) -> str:
    return re.sub(r"([|<*])", r"\\\1", cell)


def _unwrap(text: str) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text)).replace("\f", "")


# ---- the names in Python


def describe_api() -> Iterator[str]:
    """Yield the lines of a page with the public names of the package, their signatures and docstrings."""
    yield "# Python API\n\nThe public names: `from longspan import NAME`. The [stability](stability.md) page says what may change.\n"
    for name in longspan.__all__:
        yield from _describe_name(name, getattr(longspan, name), "##")


def _describe_name(name: str, given: Any, level: str) -> Iterator[str]:
    yield f"{level} {name.rpartition('.')[2] if level == '###' else name}\n"
    if callable(given):
        yield f"```python\n{_write_signature(name, given)}\n```\n"
    yield _write_docstring(given) + "\n"
    if inspect.isclass(given) or inspect.ismodule(given):
        for inner, value in _list_members(given):
            yield from _describe_name(f"{name}.{inner}", value, "###")


def _list_members(given: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public functions of a module or a class, and its properties, in the order of the source."""
    names = getattr(given, "__all__", None) or (vars(given) if inspect.isclass(given) else ())
    for name in names:
        value = getattr(given, name)
        own = inspect.isroutine(value) or isinstance(value, property) or (inspect.ismodule(given) and inspect.isclass(value))
        if not name.startswith("_") and own and value.__doc__:
            yield name, value


def _write_signature(name: str, given: Any) -> str:
    """Return a call's signature, with a line for each parameter if it is long."""
    if inspect.isclass(given) and issubclass(given, Exception):
        return name
    signature = inspect.signature(given)
    shown = _clean(f"{name}{signature}")
    if len(shown) <= WIDTH:
        return shown
    keyword = [parameter.kind is parameter.KEYWORD_ONLY for parameter in signature.parameters.values()]
    inner = [_clean(str(parameter)) for parameter in signature.parameters.values()]
    if any(keyword):
        inner.insert(keyword.index(True), "*")
    result = shown[shown.rindex(")") :]
    return "\n".join([f"{name}(", *(f"    {part}," for part in inner), result])


def _clean(signature: str) -> str:
    """Return a signature with annotations as they are written in the code, without modules."""
    plain = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
    return re.sub(r"\b[a-z_]+\.(?:\w+\.)*(?=[A-Z])", "", plain)


def _write_docstring(given: Any) -> str:
    return inspect.cleandoc(given.__doc__ or "")
