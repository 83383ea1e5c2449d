#!/usr/bin/env python3
"""When the lines of a bench come: rows.py RUNS COMMAND...

Runs the command RUNS times and prints, as median (least to most), when its first row was there, how
long all of it took, and what lies between two rows."""
import statistics
import subprocess
import sys
import time


def run(command):
    """The moments of the rows, and of the end, in seconds from the start."""
    start = time.monotonic()
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as bench:
        for line in bench.stdout:
            if len(line.split()) > 4 and line.split()[1] in ("read", "write"):
                rows.append(time.monotonic() - start)
    if bench.returncode != 0 or not rows:
        sys.exit(f"{command[0]} ended with {bench.returncode} and {len(rows)} rows")
    return rows, time.monotonic() - start


def show(what, times):
    times = sorted(times)
    print(f"{what}: {statistics.median(times):.3f} s ({times[0]:.3f} to {times[-1]:.3f})")


def main():
    runs = [run(sys.argv[2:]) for _ in range(int(sys.argv[1]))]
    print(f"{len(runs)} runs of {len(runs[0][0])} rows")
    show("first row", [rows[0] for rows, _ in runs])
    show("all of it", [end for _, end in runs])
    gaps = [late - early for rows, _ in runs for early, late in zip(rows, rows[1:])]
    if gaps:
        show("from row to row", gaps)


if __name__ == "__main__":
    main()
