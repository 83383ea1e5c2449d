#!/usr/bin/env python3
"""troubleshooting.py PROGRAM ROOT: each text that docs/troubleshooting.md tells the reader to look for is one
that `viaduct doctor --explain` knows, or one that Viaduct still prints."""
import pathlib
import re
import subprocess
import sys

program, root = sys.argv[1], pathlib.Path(sys.argv[2])


def quoted_texts():
    """The texts in code quotes of the first column, with their lines."""
    page = root / "docs/troubleshooting.md"
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("| "):
            for text in re.findall(r"`([^`]+)`", line.split(" | ")[0]):
                yield number, text


def printed_literals():
    """All string literals of the product's sources, with adjacent ones joined."""
    out = []
    for folder in ("src", "apps", "python/csrc"):
        for path in (root / folder).rglob("*.cc"):
            if not path.name.endswith("_test.cc"):
                joined = re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8"))
                out += re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)
    return out


def is_printed(text, literals):
    """True if every part of the text between values is in a literal."""
    parts = [part.strip() for part in re.split(r"…|\d+|\([a-z]\)|\b[A-Z]{2,}\b", text)]
    parts = [part for part in parts if len(re.findall(r"[a-z]{2,}", part)) >= 2]
    return bool(parts) and all(any(part in literal for literal in literals) for part in parts)


def explained(texts):
    """Asks for each text in a log line of its own, as a pod would print it."""
    known = set()
    for text in texts:
        said = subprocess.run([program, "doctor", "--explain", "-"], input=f"pod-0: {text.replace('…', ': ')}\n",
                              capture_output=True, text=True, check=False).stdout
        if "no known text" not in said:
            known.add(text)
    return known


def main():
    rows = list(quoted_texts())
    literals = printed_literals()
    ours = {text for _, text in rows if is_printed(text, literals)}
    known = explained({text for _, text in rows} - ours)
    bad = [f"docs/troubleshooting.md:{n}: neither printed by Viaduct nor known to --explain: {text}"
           for n, text in rows if text not in ours and text not in known]
    print(*bad, sep="\n")
    print(f"{len(rows)} texts: {len(ours)} of Viaduct, {len(known)} that --explain knows, {len(bad)} of nobody")
    if bad or len(ours) < 3 or len(known) < 10:
        sys.exit(1)


main()
