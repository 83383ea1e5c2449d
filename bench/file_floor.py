#!/usr/bin/env python3
"""Compares the backend file with fio and a bare loop in turns: random reads and writes with O_DIRECT.

All use io_uring, registered files and buffers, and one thread that submits. The bare loop
(file_bare) spins. fio sleeps in the kernel, and ours spins for VIADUCT_SPIN and then sleeps. All map
one memfd, so the bytes go to the same physical pages: some disks read into adjacent pages twice as
fast as into scattered ones. All leave out their first second, in which a virtual disk may exceed its
rate. fio takes whole seconds only. fio reports the processor time of that thread, and the others
that of their process.

A batch is submitted, and waited for, as a whole. A depth is kept: ours has two transfers of
twice as many blocks, and the bare loop and fio refill one batch.

usage: file_floor.py BENCH_FOLDER FILE [--rounds N] [--seconds S] [--bytes 1G] [--huge]
                     [--cases WORD] [--against FILE_BENCH]
"""
import argparse
import ctypes
import json
import mmap
import os
import statistics
import struct
import subprocess

CASES = [  # name, kind, block, depth of fio and the bare loop, blocks of a transfer, transfers
    ("4 KiB read, batch 1", "read", 4096, 1, 1, 1),
    ("4 KiB write, batch 1", "write", 4096, 1, 1, 1),
    ("4 KiB read, batch 32", "read", 4096, 32, 32, 1),
    ("4 KiB write, batch 32", "write", 4096, 32, 32, 1),
    ("4 KiB read, depth 128", "read", 4096, 128, 1024, 2),
    ("4 KiB write, depth 128", "write", 4096, 128, 1024, 2),
    ("1 MiB read, batch 1", "read", 1 << 20, 1, 1, 1),
    ("1 MiB write, batch 1", "write", 1 << 20, 1, 1, 1),
    ("1 MiB read, depth 32", "read", 1 << 20, 32, 64, 2),
    ("1 MiB write, depth 32", "write", 1 << 20, 32, 64, 2),
]


MEMORY = 34 << 20  # fio maps one page more than 32 blocks of 1 MiB


def populated(huge):
    """A descriptor of memory with all of its pages, and its mapping."""
    fd = os.memfd_create("file_floor", os.MFD_HUGETLB | os.MFD_HUGE_2MB if huge else 0)
    os.ftruncate(fd, MEMORY)
    memory = mmap.mmap(fd, MEMORY)
    for at in range(0, MEMORY, mmap.PAGESIZE):
        memory[at] = 1
    return fd, memory


def runs_per_mib(memory):
    """How many runs of adjacent physical pages make a MiB. None: only root may know."""
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory)) // mmap.PAGESIZE
    count = MEMORY // mmap.PAGESIZE
    with open("/proc/self/pagemap", "rb") as entries:
        entries.seek(first * 8)
        frames = [e & (1 << 55) - 1 for e in struct.unpack(f"{count}Q", entries.read(count * 8))]
    if not all(frames):
        return None
    breaks = sum(b != a + 1 for a, b in zip(frames, frames[1:]))
    return (breaks + 1) / (MEMORY >> 20)


def fio(case, file, seconds, fd):
    _, kind, block, depth, _, transfers = case
    words = ["fio", "--name=floor", f"--filename={file}", "--ioengine=io_uring", "--direct=1",
             f"--rw=rand{kind}", f"--bs={block}", f"--iodepth={depth}", "--numjobs=1", "--thread",
             "--registerfiles", "--fixedbufs", "--norandommap", "--time_based", "--ramp_time=1",
             f"--runtime={max(1, round(seconds))}", "--output-format=json",
             f"--iomem=mmapshared:/proc/self/fd/{fd}"]
    if transfers == 1:
        words += [f"--iodepth_batch_submit={depth}", f"--iodepth_batch_complete_min={depth}"]
    job = json.loads(subprocess.run(words, check=True, capture_output=True, text=True,
                                    pass_fds=[fd]).stdout)["jobs"][0]
    row = job[kind]
    busy = (job["usr_cpu"] + job["sys_cpu"]) / 100
    return row["iops"], busy / max(row["iops"], 1) * 1e6


def ran(words, fd):
    row = json.loads(subprocess.run(words, check=True, capture_output=True, text=True,
                                    pass_fds=[fd]).stdout)
    return row["iops"], row["cpu_us_per_io"]


def bare(folder, case, file, seconds, fd):
    _, kind, block, depth, _, _ = case
    return ran([f"{folder}/file_bare", file, kind, str(block), str(depth), str(seconds),
                f"/proc/self/fd/{fd}"], fd)


def ours(bench, case, file, seconds, fd):
    _, kind, block, _, blocks, transfers = case
    return ran([bench, file, kind, str(block), str(blocks), str(transfers), str(seconds), "auto",
                f"/proc/self/fd/{fd}"], fd)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--bytes", default="1G")
    parser.add_argument("--cases", default="", help="only cases with this in their name")
    parser.add_argument("--against", help="the file_bench of another build")
    parser.add_argument("--huge", action="store_true",
                        help="huge pages; needs 17 in vm.nr_hugepages")
    options = parser.parse_args()
    subprocess.run(["fio", "--name=fill", f"--filename={options.file}", f"--size={options.bytes}",
                    "--rw=write", "--bs=1M", "--direct=1", "--ioengine=psync"],
                   check=True, capture_output=True)
    fd, memory = populated(options.huge)
    runs = runs_per_mib(memory)
    print("memory:", "unknown (not root)" if runs is None else f"{runs:.1f}",
          "runs of adjacent pages in 1 MiB\n")
    programs = {
        "bare": lambda *case: bare(options.folder, *case),
        "fio": fio,
        "ours": lambda *case: ours(f"{options.folder}/file_bench", *case),
    }
    if options.against:
        programs["against"] = lambda *case: ours(options.against, *case)
    middle = lambda values: statistics.median(list(values))
    print("| case | program | I/Os a second, median (spread) | ours over it, of medians (of rounds) "
          "| processor, us per I/O |")
    print("|---|---|---|---|---|")
    for case in CASES:
        if options.cases not in case[0]:
            continue
        rows = {name: [] for name in programs}
        for turn in range(options.rounds):
            names = list(programs)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                rows[name].append(programs[name](case, options.file, options.seconds, fd))
        rate = {name: middle(r[0] for r in rows[name]) for name in programs}
        for name, row in rows.items():
            ratios = [o[0] / max(r[0], 1) for o, r in zip(rows["ours"], row)]
            print(f"| {case[0]} | {name} | {rate[name]:,.0f} ({min(r[0] for r in row):,.0f} to "
                  f"{max(r[0] for r in row):,.0f}) | {rate['ours'] / rate[name]:.2f} "
                  f"({middle(ratios):.2f}) | {middle(r[1] for r in row):.1f} |", flush=True)


if __name__ == "__main__":
    main()
