#!/usr/bin/env python3
"""Counts how often `viaduct compare` gives the right answer about a known difference.

usage: bench/compare_power.py VIADUCT LIBLIE_COPIES [TRIALS]

A trial is four runs of each side in turns: copies of 256 KiB over local. Side B is equal to A in
TRIALS trials (20), takes 1/0.95 of A's time for each copy in as many, and 1/0.98 in half as many.
For the smallest difference a trial takes as many runs as the comparison says that it needs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BENCH = ["bench", "--backend", "local", "--memory", "malloc", "--block-sizes", "256K", "--batch", "1",
         "--duration", "150ms"]
MOST_RUNS = 24  # of a side


def run(program, library, loss, file):
    environment = dict(os.environ, LD_PRELOAD=library, LIE="late", LIE_PART="1",
                       LIE_LATE=str(1 / (1 - loss) - 1))
    subprocess.run([program, *BENCH, "--json", file], env=environment, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(program, before, after):
    done = subprocess.run([program, "compare", "--json", "--before", *before, "--after", *after],
                          stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def trial(program, library, loss, more):
    """The answer, and the number of runs of a side. `more`: as many runs as the comparison needs."""
    with tempfile.TemporaryDirectory() as folder:
        sides = ([], [])
        needed = 4
        while len(sides[0]) < needed:
            first = len(sides[0]) % 2
            for side in (first, 1 - first):
                file = str(pathlib.Path(folder, f"{'ab'[side]}{len(sides[side])}.json"))
                run(program, library, loss if side else 0, file)
                sides[side].append(file)
            if len(sides[0]) == needed:
                found = compare(program, *sides)
                if more and found["rows"][0]["difference"] == "no difference seen":
                    needed = min(max(found["runs_needed"], needed), MOST_RUNS)
        return found["rows"][0]["difference"], needed


def main():
    program, library = sys.argv[1:3]
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    for loss, count, wanted in ((0, trials, "no difference seen"), (0.05, trials, "slower"),
                                (0.02, trials // 2, "slower")):
        answers = [trial(program, library, loss, loss == 0.02) for _ in range(count)]
        right = sum(answer == wanted for answer, _ in answers)
        print(f"-{loss:.0%}: {right} of {count} are '{wanted}'; runs of a side:",
              ", ".join(str(runs) for _, runs in answers), flush=True)


if __name__ == "__main__":
    main()
