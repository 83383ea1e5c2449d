#!/usr/bin/env python3
"""Measures collectives of torch.distributed on CPUs or GPUs, and prints them as nccl-tests does.

    python3 examples/torch/collectives.py --ranks 4 | tee torch.log
    viaduct pattern allreduce-traffic --members 4 --backend tcp --json viaduct.json
    viaduct report viaduct.json torch.log -o report.html

Needs PyTorch. All ranks run on this host, unless a launcher such as torchrun has set RANK,
WORLD_SIZE and MASTER_ADDR. docs/patterns.md says how to compare the rows.
"""

import argparse
import os
import re
import socket
import statistics
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as processes
except ImportError:
    sys.exit("this example needs PyTorch: pip install torch")

# busbw / algbw with n ranks, as in nccl-tests. The size counts the data of all ranks.
FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1,
    "sendrecv": lambda n: 1,
}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
FLOAT = 4  # bytes


def size_of(text):
    match = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 64K, 1M or 1G")
    return int(match[1]) * UNITS[match[2].upper()]


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ranks", type=int, default=2, help="processes on this host [2]")
    parser.add_argument("--collective", choices=sorted(FACTORS), default="all_reduce")
    parser.add_argument("--min-bytes", type=size_of, default="64K", help="[64K]")
    parser.add_argument("--max-bytes", type=size_of, default="64M", help="[64M]")
    parser.add_argument("--factor", type=int, default=4, help="between two sizes [4]")
    parser.add_argument("--iterations", type=int, default=20, help="timed ones of each size [20]")
    parser.add_argument("--warmup", type=int, default=5, help="[5]")
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo")
    options = parser.parse_args()
    if options.ranks < 2:
        parser.error("--ranks: a collective needs at least 2 ranks")
    if options.factor < 2 or options.iterations < 1 or options.warmup < 0:
        parser.error("--factor is at least 2, --iterations at least 1, --warmup at least 0")
    if options.min_bytes > options.max_bytes:
        parser.error("--min-bytes is larger than --max-bytes")
    return options


class Collective:
    """One operation on `elements` floats. Each run starts from the same values."""

    def __init__(self, name, elements, device):
        self.name, self.rank, self.ranks = name, dist.get_rank(), dist.get_world_size()
        self.mine = torch.empty(elements, dtype=torch.float32, device=device)
        self.other = torch.empty_like(self.mine)
        self.parts = list(self.other.split(elements // self.ranks))

    def fill(self):
        self.mine.fill_(self.rank + 1)
        self.other.fill_(0)

    def run(self):
        if self.name == "all_reduce":
            dist.all_reduce(self.mine)
        elif self.name == "all_gather":
            dist.all_gather(self.parts, self.mine[: self.parts[0].numel()])
        elif self.name == "broadcast":
            dist.broadcast(self.mine, 0)
        else:
            to, source = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
            for work in dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, self.mine, to), dist.P2POp(dist.irecv, self.other, source)]
            ):
                work.wait()

    def wrong(self):
        """Returns the number of wrong elements after one run."""
        if self.name == "all_reduce":
            return int((self.mine != self.ranks * (self.ranks + 1) / 2).sum())
        if self.name == "broadcast":
            return int((self.mine != 1).sum())
        if self.name == "sendrecv":
            return int((self.other != (self.rank - 1) % self.ranks + 1).sum())
        return sum(int((part != rank + 1).sum()) for rank, part in enumerate(self.parts))


def seconds(collective, options, device):
    """Returns the median time. The slowest rank decides the time of each iteration."""
    times = []
    for iteration in range(options.warmup + options.iterations):
        dist.barrier()
        start = time.perf_counter()
        collective.run()
        if device.type == "cuda":
            torch.cuda.synchronize()
        taken = torch.tensor([time.perf_counter() - start], device=device)
        dist.all_reduce(taken, op=dist.ReduceOp.MAX)
        if iteration >= options.warmup:
            times.append(float(taken[0]))
    return statistics.median(times)


def wrong_elements(collective, device):
    collective.fill()
    collective.run()
    wrong = torch.tensor([collective.wrong()], device=device)
    dist.all_reduce(wrong)
    return int(wrong[0])


def everybody():
    """Returns the process id and host of each rank."""
    out = [None] * dist.get_world_size()
    dist.all_gather_object(out, (os.getpid(), socket.gethostname()))
    return out


def print_head(options, device, ranks):
    print(f"# torch.distributed {torch.__version__}, {options.backend}")
    print(f"# Collective test starting: {options.collective}_perf")
    print(
        f"# nThread 1 nGpus 1 minBytes {options.min_bytes} maxBytes {options.max_bytes} step: "
        f"{options.factor}(factor) warmup iters: {options.warmup} iters: {options.iterations} "
        "agg iters: 1 validation: 1 graph: 0"
    )
    for rank, (process, host) in enumerate(ranks):
        print(f"#  Rank {rank:2} Group  0 Pid {process:6} on {host:>10} device {device.type}")
    print("#       size         count      type   redop    root     time   algbw   busbw  #wrong")
    print("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)")


def measure(options, device):
    rank, ranks, all_ranks = dist.get_rank(), dist.get_world_size(), everybody()
    if rank == 0:
        print_head(options, device, all_ranks)
    size, rates = options.min_bytes, []
    while size <= options.max_bytes:
        elements = max(size // FLOAT // ranks, 1) * ranks
        collective = Collective(options.collective, elements, device)
        collective.fill()
        taken = seconds(collective, options, device)
        wrong = wrong_elements(collective, device)
        algbw = elements * FLOAT / taken / 1e9
        busbw = algbw * FACTORS[options.collective](ranks)
        rates.append(busbw)
        redop = "sum" if options.collective == "all_reduce" else "none"
        root = 0 if options.collective == "broadcast" else -1
        if rank == 0:
            print(
                f"{elements * FLOAT:12} {elements:13}     float {redop:>7} {root:7} "
                f"{taken * 1e6:8.1f} {algbw:7.3f} {busbw:7.3f} {wrong:7}",
                flush=True,
            )
        size *= options.factor
    if rank == 0:
        print(f"# Avg bus bandwidth    : {statistics.mean(rates):.4g}")


def one_rank(rank, options, folder):
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group(options.backend)
    else:
        store = dist.FileStore(os.path.join(folder, "store"), options.ranks)
        dist.init_process_group(options.backend, store=store, rank=rank, world_size=options.ranks)
    device = torch.device("cpu")
    if options.backend == "nccl":
        device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    measure(options, device)
    dist.destroy_process_group()


def main():
    options = parsed()
    if options.backend == "nccl" and not torch.cuda.is_available():
        sys.exit("collectives.py: --backend nccl needs a GPU; use --backend gloo")
    if "WORLD_SIZE" in os.environ:
        one_rank(int(os.environ["RANK"]), options, "")
        return
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(one_rank, (options, folder), nprocs=options.ranks)


if __name__ == "__main__":
    main()
