#!/usr/bin/env python3
"""Parses the blocks of YAML of all pages. usage: yaml_blocks.py ROOT. exit: 0 passed; 1 failed; 77 skipped"""
import pathlib
import sys

try:
    import yaml
except ImportError:
    print("skipped: there is no YAML module for Python (Debian: python3-yaml)")
    sys.exit(77)

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402


def main():
    faults = []
    for page in check_docs.pages(ROOT):
        for block in check_docs.blocks(page.read_text()):
            if block.language == "yaml" and block.note != "fragment":
                try:
                    list(yaml.safe_load_all(block.text))
                except yaml.YAMLError as error:
                    faults.append(f"{page}:{block.line}: {error}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
