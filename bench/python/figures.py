"""Rows of figures, and the typical time of a call: for the programs in this folder."""

import os
import statistics
import subprocess
import sys
import threading
import time


def say(what, value, unit="ns"):
    print(f"{what:58} {value:10.{0 if unit == 'ns' else 2}f} {unit}", flush=True)


def machine():
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def typical(call, times=1, repeats=9):
    """Returns the seconds of one call: the median of some runs, each of `times` calls."""
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(times):
            call()
        took.append((time.perf_counter() - began) / times)
    return statistics.median(took)


def printed(code):
    """Returns the number that a program prints."""
    return float(subprocess.check_output([sys.executable, "-c", code]))


def starts(package, first):
    """Prints what it costs a new process to import a package and to make its first agent."""
    clock = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
    for what, code in ((f"import {package}", clock.format(f"import {package}")),
                       ("the first agent", f"import {package}; " + clock.format(first))):
        say(what, 1e3 * statistics.median(printed(code) for _ in range(9)), "ms")
    say("threads before it", printed(f"import os, {package}; print(len(os.listdir('/proc/self/task')))"), "")


def together(calls):
    """Makes each call on a thread of its own. Returns their results."""
    results = [None] * len(calls)

    def run(number):
        results[number] = calls[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def times_of(move, count):
    """Returns the seconds of each of `count` calls, in order of their length."""
    took = []
    for _ in range(count):
        began = time.perf_counter()
        move()
        took.append(time.perf_counter() - began)
    return sorted(took)
