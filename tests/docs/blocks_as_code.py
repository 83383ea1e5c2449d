#!/usr/bin/env python3
"""Writes the blocks of C and C++ of all pages as two source files, which the build compiles.

usage: blocks_as_code.py ROOT OUT.c OUT.cc

The blocks of a page are one function. A block sees the names of the blocks above it, may declare them anew,
and sees those of scene.h, or scene_c.h. Blocks that quote a file, or that are fragments, are left out.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402

INCLUDE = re.compile(r"^#include .*\n", re.M)
FUNCTION = {"c": "void page_{}(void) {{\n{}}}\n",
            "cpp": "namespace viaduct::pages::{} {{\nStatus page() {{\n{}return Ok{{}};\n}}\n}}\n"}
SCENE = {"c": '#include "scene_c.h"\n', "cpp": '#include "scene.h"\n'}


def code_of(page, language):
    """The includes of the page's blocks, and one function with its blocks."""
    includes, body, count = "", "", 0
    for block in check_docs.blocks(page.read_text()):
        if block.language != language or block.note == "fragment" or block.note.startswith(check_docs.QUOTE):
            continue
        includes += "".join(INCLUDE.findall(block.text))
        body += f'{{\n#line {block.line + 1} "{page}"\n' + INCLUDE.sub("\n", block.text)
        count += 1
    name = re.sub(r"\W", "_", str(page.relative_to(ROOT)))
    return (includes, FUNCTION[language].format(name, body + "}" * count + "\n")) if count else ("", "")


def main():
    for language, out in zip(("c", "cpp"), sys.argv[2:]):
        code = [code_of(page, language) for page in check_docs.pages(ROOT)]
        text = SCENE[language] + "".join(one for one, _ in code) + "".join(one for _, one in code)
        pathlib.Path(out).write_text(text)


if __name__ == "__main__":
    main()
