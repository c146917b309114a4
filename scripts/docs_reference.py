"""The reference: a page for each package, from the docstrings of its public modules, classes and functions.

Nothing is imported: griffe reads the source. Docstrings are Markdown already; their examples become code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import griffe

SINGLE = "softcount"
"""The page of modules that are in no package."""
PACKAGES = (
    "agents bonuses envs integrations launch measure memory replay report representations roles runs torsos"
)


def pages(source: Path) -> dict[str, str]:
    """Returns the text of every page by its name."""
    package = griffe.load("softcount", search_paths=[str(source)], allow_inspection=False)
    texts: dict[str, list[str]] = {}
    for module in _modules(package):
        texts.setdefault(page_of(module.path), []).append(_describe_module(module))
    return {page: f"# {page}\n\n" + "\n".join(parts) for page, parts in sorted(texts.items())}


def page_of(module: str) -> str:
    """Returns the page that a module is on.

    >>> page_of("softcount.memory.recode"), page_of("softcount.config")
    ('memory', 'softcount')
    """
    first = [*module.split("."), ""][1]
    return first if first in PACKAGES.split() else SINGLE


def as_markdown(docstring: str) -> str:
    """Returns a docstring with its examples as blocks of code.

    >>> print(as_markdown("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nThat is all."))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    That is all.
    """
    paragraphs = re.split(r"\n\s*\n", docstring.strip("\n"))
    return "\n\n".join(
        f"```pycon\n{part}\n```" if part.lstrip().startswith(">>>") else part for part in paragraphs
    )


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    if not module.name.startswith("_"):
        yield module
        for name in sorted(module.modules):
            if not module.modules[name].is_alias:  # a module that another one imports, not its own
                yield from _modules(module.modules[name])


def _describe_module(module: griffe.Module) -> str:
    parts = [f"## {module.path}\n", _doc(module)]
    for member in module.members.values():
        if not member.is_alias and not member.is_module and not member.name.startswith("_"):
            parts.append(_describe(member, module.path))
    return "\n\n".join(part for part in parts if part) + "\n"


def _describe(member: griffe.Object | griffe.Alias, scope: str, fence: str = "``````") -> str:
    """Returns a function, a class with what it has, or a documented value, for Sphinx's Python domain."""
    text = _doc(member)
    if member.is_function and text:
        kind = "method" if scope.count(".") and fence != "``````" else "function"
        return f"{fence}{{py:{kind}}} {scope}.{member.name}{_signature(member)}\n\n{text}\n{fence}"
    if member.is_class and text:
        inside = [
            _describe(each, member.path, fence[:-1])
            for each in member.members.values()
            if not each.is_alias and (not each.name.startswith("_"))
        ]
        body = "\n\n".join([text, *filter(None, inside)])
        bases = f"\n\nBases: {', '.join(f'`{base}`' for base in member.bases)}" if member.bases else ""
        return f"{fence}{{py:class}} {member.path}\n\n{body}{bases}\n{fence}"
    if member.is_attribute and text:
        options = f":type: {_type(member.annotation)}\n" if member.annotation else ""
        value = str(member.value or "")
        options += f":value: {value}\n" if 0 < len(value) < 40 and "\n" not in value else ""
        kind = "attribute" if fence != "``````" else "data"
        return f"{fence}{{py:{kind}}} {scope}.{member.name}\n{options}\n{text}\n{fence}"
    return ""


def _signature(function: griffe.Function) -> str:
    """Returns a signature on one line; defaults that are long are left out."""
    words: list[str] = []
    is_keyword = False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = str(getattr(parameter.kind, "value", parameter.kind))
        if kind == "keyword-only" and not is_keyword:
            words.append("*")
            is_keyword = True
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        is_keyword = is_keyword or kind == "variadic positional"
        annotation = f": {_type(parameter.annotation)}" if parameter.annotation else ""
        default = str(parameter.default) if parameter.default is not None and not stars else ""
        default = f" = {default if len(default) < 40 else '...'}" if default else ""
        words.append(f"{stars}{parameter.name}{annotation}{default}")
    returns = f" -> {_type(function.returns)}" if function.returns else ""
    return f"({', '.join(words)}){returns}"


def _type(annotation: griffe.Expr | str) -> str:
    """Returns an annotation with the full names of our own types, by which they are found."""
    if isinstance(annotation, str):
        return annotation
    names = (
        part.canonical_path
        if isinstance(part, griffe.ExprName) and part.canonical_path.startswith("softcount.")
        else str(part)
        for part in annotation.iterate(flat=True)
    )
    return "".join(names)


def _doc(member: griffe.Object | griffe.Alias) -> str:
    return as_markdown(member.docstring.value) if member.docstring else ""
