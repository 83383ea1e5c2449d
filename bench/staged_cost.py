#!/usr/bin/env python3
"""Processor time of staging: a staged write of 64 chunks of 64 KiB, less its stages alone.

Both agents are in one process, so the time covers both ends. The difference between a long and a
short run leaves out opening and connecting. The rounds take turns.

usage: staged_cost.py [HOT_PATHS] [ROUNDS]
"""
import resource
import statistics
import subprocess
import sys

CHUNKS, SHORT, LONG = 64, 20, 220


def seconds(program, path, times):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, path, str(times)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def microseconds_per_chunk(program, path):
    extra = seconds(program, path, LONG) - seconds(program, path, SHORT)
    return extra / (LONG - SHORT) / CHUNKS * 1e6


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/bench/hot_paths"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    paths = ("move-64x64K", "store-64x64K", "staged-64x64K")
    costs = [[microseconds_per_chunk(program, path) for path in paths] for _ in range(rounds)]
    for path, values in zip(paths, zip(*costs)):
        print(f"{path:15} {statistics.median(values):6.1f} us of processor time per chunk")
    more = [staged - move - store for move, store, staged in costs]
    print(f"staging itself  {statistics.median(more):6.1f} ({min(more):.1f} to {max(more):.1f})")


if __name__ == "__main__":
    main()
