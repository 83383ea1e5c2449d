#!/usr/bin/env python3
"""test_results.py FOLDER            sums up the JUnit files of one or more runs of ctest; exit 1 if a test failed
test_results.py --skipped FILE    prints a regular expression of the names of the tests that were skipped
"""
import argparse
import glob
import os
import re
import sys
import xml.etree.ElementTree as xml

LINES = 40  # of the output of a test that failed


def cases(path):
    """Name, state and output of each test. A program that is not there counts as failed."""
    for case in xml.parse(path).getroot().iter("testcase"):
        state, skip = case.get("status"), case.find("skipped")
        if state == "notrun" and not skip.get("message", "").startswith("SKIP_"):
            state = "fail"
        yield case.get("name"), state, case.findtext("system-out") or ""


def skipped(path):
    """Matches all names that were skipped in FILE, and no other name."""
    names = [name for name, state, _ in cases(path) if state == "notrun"]
    return f"^({'|'.join(map(re.escape, names)) or 'none'})$"


def sum_up(folder):
    """A test that ran twice, as two users, failed if it failed once, and was skipped if it never ran."""
    states = {}
    failures = []
    for path in sorted(glob.glob(os.path.join(folder, "*.xml"))):
        run = os.path.splitext(os.path.basename(path))[0]
        for name, state, output in cases(path):
            if state == "fail":
                failures.append((run, name, output))
            states.setdefault(name, set()).add(state)
    for run, name, output in failures:
        print(f"\n--- {name} failed ({run}); the end of what it printed:")
        print("\n".join(output.rstrip().splitlines()[-LINES:]))
    failed = sorted({name for _, name, _ in failures})
    ran = [name for name, states_of_one in states.items() if states_of_one & {"run", "fail"}]
    print(f"\n{len(states)} tests: {len(ran) - len(failed)} passed, {len(states) - len(ran)} skipped or disabled, "
          f"{len(failed)} failed")
    for name in failed:
        print(f"  failed: {name}")
    return 1 if failed or not states else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skipped", action="store_true", help="print which tests of one file were skipped")
    parser.add_argument("path", help="a folder of JUnit files, or with --skipped one such file")
    args = parser.parse_args()
    if args.skipped:
        print(skipped(args.path))
        return 0
    return sum_up(args.path)


if __name__ == "__main__":
    sys.exit(main())
