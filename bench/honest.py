#!/usr/bin/env python3
"""Counts false alarms: rows of honest runs that the benchmark does not believe.

usage: bench/honest.py VIADUCT [PLAIN [LOADED]]

Runs `viaduct bench` over local and over tcp, and `viaduct p2p` between two commands, in turns:
PLAIN runs (20) on the machine as it is, then LOADED runs (10) beside two busy loops. Prints how many
rows had which verdict, and ends with 1 if one of them was neither ok nor unproven.
"""
import collections
import json
import socket
import subprocess
import sys
import tempfile

SHORT = ["--block-sizes", "4K,64K,1M", "--duration", "100ms"]


def bench(program, backend, file):
    subprocess.run([program, "bench", "--backend", backend, *SHORT, "--json", file],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def p2p(program, file):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [program, "p2p", "--ip", "127.0.0.1", "--port", port, "--mode"]
    target = subprocess.Popen(words + ["target"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    while "waiting for" not in target.stdout.readline():
        pass
    subprocess.run(words + ["initiator", "--buffer_sizes", "4KB,64KB,1MB", "--duration", "100ms",
                            "--json", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    target.terminate()
    target.wait()


KINDS = {
    "bench local": lambda program, file: bench(program, "local", file),
    "bench tcp": lambda program, file: bench(program, "tcp", file),
    "p2p": p2p,
}


def measure(program, runs):
    """The verdicts of all rows, what is said of some of them, and how many have a remark."""
    found, said, remarks = collections.Counter(), [], 0
    for run in range(runs):
        kind = list(KINDS)[run % len(KINDS)]
        with tempfile.NamedTemporaryFile() as file:
            KINDS[kind](program, file.name)
            with open(file.name, encoding="utf-8") as text:
                report = json.load(text)
        if len(report["rows"]) != 3 or report["end"] != "complete":
            found["missing"] += 3 - len(report["rows"])
            said.append(f"{kind}: {report['end']}")
        for row in report["rows"]:
            found[row["verdict"]] += 1
            if row.get("remark"):
                remarks += 1
                said.append(f"{kind} {row['block_size']}: remark: {row['remark']}")
            if row["verdict"] != "ok":
                said.append(f"{kind} {row['block_size']}: {row['verdict']}: {row['why']}")
    return found, said, remarks


def main():
    program = sys.argv[1]
    plain = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    loaded = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    alarms = 0
    for name, runs, loops in (("plain", plain, 0), ("beside two busy loops", loaded, 2)):
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(loops)]
        try:
            found, said, remarks = measure(program, runs)
        finally:
            for loop in busy:
                loop.kill()
                loop.wait()
        alarms += sum(found.values()) - found["ok"] - found["unproven"]
        print(f"{name}: {runs} runs, {sum(found.values())} rows:",
              ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items())) +
              f"; {remarks} with a remark")
        for line in said:
            print(f"  {line}")
    print(f"{alarms} false alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
