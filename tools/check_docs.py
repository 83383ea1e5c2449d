#!/usr/bin/env python3
"""Fails when a relative link in a Markdown file leads nowhere, or to a heading that is not there; when
code that a page quotes from a file differs from it; when a block of code is one that nothing compiles,
parses or runs; when a command has a flag that the program does not know; when the page of errors has other codes
than the header; and when a sentence is hard to read.

A quote is a block of C++ under a line `<!-- the code of FILE -->`. FILE holds the same lines between
`// README begins` and `// README ends`.

A block without a language, or of `text`, is output; its lines that begin with "$ " are shell. Blocks of Python, JSON
and shell are parsed here, and tests/docs compiles those of C and C++, and parses those of YAML. A block under a line `<!-- fragment -->` is
code that does not stand alone; a block of any other language needs this line.

The flags of a command are those of its section in docs/bench-flags.md. Commands without a section there
are not checked.

A sentence is hard to read when it has more than 25 words, starts with a word such as "What" or "Where",
or uses a picture in place of the field's own word. Code and headings are not checked. The generated pages
hold the program's help, which starts many sentences in lower case.

usage: check_docs.py [ROOT]
"""
import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import typing

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
QUOTE = "the code of "
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^( *)```(\w*)\n(.*?)^\2```$", re.M | re.S)
TYPED = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.M)  # a command beside its output
QUOTED = re.compile(r"^// README begins\n(.*?)^// README ends", re.M | re.S)
SECTION = re.compile(r"^## `viaduct ([a-z ]+)`\n(.*?)(?=^## |\Z)", re.M | re.S)
COMMAND = re.compile(r"\bviaduct ((?:kv )?[a-z]+)((?:[^\n`|;&#\\]|\\\n)*)")
FLAG = re.compile(r"(?<![\w-])--([a-z][\w-]*)")
HEADING = re.compile(r"^#+\s+(.*)$", re.M)

GENERATED = "<!-- Generated: "  # the program writes the text below it
NOT_PROSE = re.compile(r"^```.*?^```|^(?: {4}|#|<!--)[^\n]*", re.M | re.S)
BLOCK_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|\|")
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"*]*\s+")
MOST_WORDS = 25
VAGUE_START = re.compile(r"(What|Who|Whom|Those|Of|Where|That which)\b")
PICTURE = re.compile(
    r"\b(cranks?|halls?|letters?|knocks?|ground|crews?|seats?|so many|is of|are of|by halves"
    r"|who does|what does|who comes|what comes|what came|who waits|whoever|whom it|is nobody's)\b",
    re.I,
)


def anchors(text):
    """The names that a page's headings go by."""
    names = (re.sub(r"[^\w\- ]", "", h.lower()).strip() for h in HEADING.findall(text))
    return {name.replace(" ", "-") for name in names}


class Block(typing.NamedTuple):
    """A block between fences. The note is the comment in the line above it."""

    line: int
    note: str
    language: str
    text: str

    @property
    def is_code(self):
        return self.language not in ("", "text")


def blocks(text):
    for found in BLOCK.finditer(text):
        yield Block(text.count("\n", 0, found.start(2)) + 1, found[1] or "", found[3], textwrap.dedent(found[4]))


def parse_shell(text):
    shell = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    if shell.returncode != 0:
        raise ValueError(shell.stderr.splitlines()[0])


def parse_python(text):
    compile(text, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


PARSERS = {"python": parse_python, "json": json.loads, "sh": parse_shell}
PARSED_BY_TESTS = {"c", "cpp", "yaml"}


def faulty_blocks(text):
    """The blocks of code that do not parse, or that nothing tests."""
    for block in blocks(text):
        language, code = block.language, block.text
        if not block.is_code:
            language, code = "sh", "\n".join(TYPED.findall(code))
        if block.note == "fragment" or language in PARSED_BY_TESTS:
            continue
        if language not in PARSERS:
            yield f"line {block.line}: nothing tests a block of {language}: mark it <!-- fragment -->"
            continue
        try:
            PARSERS[language](code)
        except (ValueError, SyntaxError) as error:
            yield f"line {block.line}: a block of {language} does not parse: {error}"


def quotes(root, page, text):
    """The quotes of a page that differ from their files."""
    for block in blocks(text):
        if not block.note.startswith(QUOTE):
            continue
        name, quote = block.note.removeprefix(QUOTE), block.text
        source = root / name
        if "/" in name and not (root / name.split("/")[0]).exists():
            continue  # an installed tree does not have the folder
        there = QUOTED.search(source.read_text()) if source.exists() else None
        if there is None or there[1] != quote:
            yield f"{page.relative_to(root)}: the code of {name} is not what that file says"


def flags_of_commands(root):
    """The flags that each command has. A section may name another one, whose flags it has, too."""
    listed = root / "docs" / "bench-flags.md"
    sections = dict(SECTION.findall(listed.read_text())) if listed.exists() else {}
    flags = {}
    for command, text in sections.items():
        flags[command] = set(FLAG.findall(text))
        for other in re.findall(r"^As in viaduct ([a-z ]+):", text, re.M):
            flags[command] |= flags[other]
    return flags


def unknown_flags(text, flags):
    """The flags in a page's commands that the program does not have."""
    for command, rest in COMMAND.findall(text):
        for flag in FLAG.findall(rest) if command in flags else ():
            if flag.replace("_", "-") not in flags[command] | {"help"}:
                yield f"viaduct {command} has no flag --{flag}"


def codes(root):
    """The codes that only one of the page of errors and the header has."""
    header, page = root / "include" / "viaduct" / "result.h", root / "docs" / "errors.md"
    if not header.exists() or not page.exists():
        return  # an installed tree has the page alone
    declared = re.findall(r"^  (k\w+),", re.search(r"enum class Code .*?\n};", header.read_text(), re.S)[0], re.M)
    described = re.findall(r"^\| `(k\w+)` \|", page.read_text(), re.M)
    for code in sorted(set(declared) ^ set(described)):
        yield f"{page.relative_to(root)}: {code} is {'not there' if code in declared else 'no code'}"


def sentences(text):
    """The sentences of a page: of its paragraphs, list items and table cells. Code, and a list of
    code, is the word X."""
    text = re.sub(r"`[^`]*`(,\s+`[^`]*`)*", "X", NOT_PROSE.sub("\n", text))
    text = LINK.sub(lambda link: link[0].partition("](")[0].lstrip("["), text).replace("**", "")
    for block in BLOCK_END.split(text):
        block = re.sub(r"^([-*>]|\d+\.)\s+", "", " ".join(block.split()))
        yield from SENTENCE_END.split(block)


def hard_sentences(text):
    """Says of each sentence that is hard to read why it is."""
    vague_start = re.compile(VAGUE_START.pattern, re.I) if GENERATED in text else VAGUE_START
    for sentence in sentences(text):
        words = len(re.findall(r"\S*\w\S*", sentence))
        if words > MOST_WORDS:
            yield f"{words} words in a sentence, {MOST_WORDS} at most: {sentence[:60]}..."
        if start := vague_start.match(sentence):
            yield f'a sentence starts with "{start[0]}": {sentence[:60]}...'
        for picture in PICTURE.findall(sentence):
            yield f'"{picture}": name the thing: {sentence[:60]}...'


def pages(root):
    """The Markdown files below root. Tests that run beside this one change the build folder."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - {"build", ".git"})
        yield from (pathlib.Path(folder) / name for name in sorted(files) if name.endswith(".md"))


def check(root):
    found = list(codes(root))
    flags = flags_of_commands(root)
    for page in pages(root):
        name, text = str(page.relative_to(root)), page.read_text()
        for link in LINK.findall(CODE.sub("", text)):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, heading = link.partition("#")
            there = (page.parent / target).resolve() if target else page
            if not there.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif heading and heading not in anchors(there.read_text()):
                found.append(f"{name}: {link}: no such heading")
        found.extend(quotes(root, page, text))
        found.extend(f"{name}: {fault}" for fault in faulty_blocks(text))
        found.extend(f"{name}: {fault}" for fault in unknown_flags(text, flags))
        found.extend(f"{name}: {why}" for why in hard_sentences(text))
    return found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = check(root.resolve())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
