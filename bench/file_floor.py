#!/usr/bin/env python3
"""Compares the backend file with fio in turns: random reads and writes with O_DIRECT.

Both use io_uring, registered files and buffers, and one submitting thread that sleeps while it
waits. Both map one memfd, so the bytes go to the same physical pages: some disks read into
adjacent pages twice as fast as into scattered ones. Both leave out their first second, in which a
virtual disk may exceed its rate. fio takes whole seconds only. fio reports the processor time of
that thread. Ours is that of the whole process: the mover's thread, and the thread that posts and
waits.

usage: file_floor.py FILE_BENCH FILE [--rounds N] [--seconds S] [--bytes 1G] [--huge]
"""
import argparse
import ctypes
import json
import mmap
import os
import statistics
import struct
import subprocess

CASES = [  # name, kind, block, depth, blocks of a transfer, transfers
    ("1 MiB read, depth 32", "read", 1 << 20, 32, 64, 2),
    ("1 MiB write, depth 32", "write", 1 << 20, 32, 64, 2),
    ("4 KiB read, depth 128", "read", 4096, 128, 1024, 2),
    ("4 KiB write, depth 128", "write", 4096, 128, 1024, 2),
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


def fio(file, kind, block, depth, seconds, fd):
    words = ["fio", "--name=floor", f"--filename={file}", "--ioengine=io_uring", "--direct=1",
             f"--rw=rand{kind}", f"--bs={block}", f"--iodepth={depth}", "--numjobs=1", "--thread",
             "--registerfiles", "--fixedbufs", "--norandommap", "--time_based", "--ramp_time=1",
             f"--runtime={seconds}", "--output-format=json",
             f"--iomem=mmapshared:/proc/self/fd/{fd}"]
    job = json.loads(subprocess.run(words, check=True, capture_output=True, text=True,
                                    pass_fds=[fd]).stdout)
    job = job["jobs"][0]
    row = job[kind]
    busy = (job["usr_cpu"] + job["sys_cpu"]) / 100
    return row["iops"], busy / row["iops"] * 1e6


def ours(bench, file, kind, block, blocks, transfers, seconds, fd):
    words = [bench, file, kind, str(block), str(blocks), str(transfers), str(seconds), "auto",
             f"/proc/self/fd/{fd}"]
    row = json.loads(subprocess.run(words, check=True, capture_output=True, text=True,
                                    pass_fds=[fd]).stdout)
    return row["iops"], row["cpu_us_per_io"], row["way"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench")
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--bytes", default="1G")
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
    print("| case | fio IOPS | ours | ratio (spread) | fio CPU us/IO | ours | ratio | way |")
    print("|---|---|---|---|---|---|---|---|")
    for name, kind, block, depth, blocks, transfers in CASES:
        rows = []
        for turn in range(options.rounds):
            both = [
                lambda: fio(options.file, kind, block, depth, options.seconds, fd),
                lambda: ours(options.bench, options.file, kind, block, blocks, transfers,
                             options.seconds, fd),
            ]
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            done = {i: both[i]() for i in order}
            rows.append((done[0], done[1]))
        middle = lambda values: statistics.median(list(values))
        ratios = [o[0] / f[0] for f, o in rows]
        print(f"| {name} | {middle(f[0] for f, _ in rows):.0f} | {middle(o[0] for _, o in rows):.0f} "
              f"| {middle(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
              f"| {middle(f[1] for f, _ in rows):.2f} | {middle(o[1] for _, o in rows):.2f} "
              f"| {middle(o[1] for _, o in rows) / middle(f[1] for f, _ in rows):.2f} | {rows[0][1][2]} |", flush=True)


if __name__ == "__main__":
    main()
