#!/usr/bin/env python3
"""Fails when a relative link in a Markdown file leads nowhere, or to a heading that is not there, and
when code that a page quotes from a file differs from it.

A quote is a block of C++ under a line `<!-- the code of FILE -->`. FILE holds the same lines between
`// README begins` and `// README ends`.

usage: check_docs.py [ROOT]
"""
import os
import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
QUOTE = re.compile(r"^<!-- the code of (\S+) -->\n```cpp\n(.*?)^```", re.M | re.S)
QUOTED = re.compile(r"^// README begins\n(.*?)^// README ends", re.M | re.S)
HEADING = re.compile(r"^#+\s+(.*)$", re.M)


def anchors(text):
    """The names that a page's headings go by."""
    names = (re.sub(r"[^\w\- ]", "", h.lower()).strip() for h in HEADING.findall(text))
    return {name.replace(" ", "-") for name in names}


def quotes(root, page, text):
    """The quotes of a page that are not what their files say."""
    for name, quote in QUOTE.findall(text):
        source = root / name
        there = QUOTED.search(source.read_text()) if source.exists() else None
        if there is None or there[1] != quote:
            yield f"{page.relative_to(root)}: the code of {name} is not what that file says"


def pages(root):
    """The Markdown files below root. Tests that run beside this one change the build folder."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - {"build", ".git"})
        yield from (pathlib.Path(folder) / name for name in sorted(files) if name.endswith(".md"))


def check(root):
    found = []
    for page in pages(root):
        text = page.read_text()
        for link in LINK.findall(CODE.sub("", text)):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, heading = link.partition("#")
            there = (page.parent / target).resolve() if target else page
            name = page.relative_to(root)
            if not there.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif heading and heading not in anchors(there.read_text()):
                found.append(f"{name}: {link}: no such heading")
        found.extend(quotes(root, page, text))
    return found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = check(root.resolve())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
