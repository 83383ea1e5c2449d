"""Tests transfers over TCP between two hosts: network namespaces with a link between them.

This is the network of a deployment without GPUs and without RDMA.
"""

import os
import shutil
import subprocess

import pytest

pytest.importorskip("numpy")

from fleet_testing import TCP, Child, link, results
from test_failures import lose, reader, victim
from test_vllm_pull import decode, prefill, scattered


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Hosts:
    """Creates two network namespaces, a and b, whose only link is a veth pair."""

    def __init__(self):
        self.a, self.b = (f"fleet-{os.getpid()}-{name}" for name in "ab")

    def build(self):
        for host in (self.a, self.b):
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
        ip("-n", self.a, "link", "add", "cable", "type", "veth", "peer", "name", "cable",
           "netns", self.b)
        for host, address in ((self.a, "10.77.0.1/24"), (self.b, "10.77.0.2/24")):
            ip("-n", host, "address", "add", address, "dev", "cable")
            ip("-n", host, "link", "set", "cable", "up")

    def cut(self):
        ip("-n", self.b, "link", "set", "cable", "down")

    def mend(self):
        ip("-n", self.b, "link", "set", "cable", "up")

    def remove(self):
        for host in (self.a, self.b):
            subprocess.run(["ip", "netns", "delete", host], capture_output=True)


@pytest.fixture
def hosts():
    if shutil.which("ip") is None:
        pytest.skip("no ip (package iproute2)")
    two = Hosts()
    try:
        try:
            two.build()
        except OSError as error:
            pytest.skip(f"no network namespaces: {error}")
        yield two
    finally:
        two.remove()


def test_a_decode_worker_reads_from_a_prefill_worker_of_another_host(hosts):
    requests = scattered(requests=8, blocks=8)
    one, other = link()
    with Child(prefill, one, requests, namespace=hosts.a, **TCP) as a:
        with Child(decode, other, requests, namespace=hosts.b, **TCP) as b:
            (seen, _), count = results(a, b)
    assert seen == [*range(8), 1008] and count == 8


def test_a_cable_is_cut_and_mended(hosts):
    with Child(victim, "doomed", 1, namespace=hosts.a, **TCP) as doomed, \
            Child(victim, "bystander", 2, namespace=hosts.b, **TCP) as bystander:
        card = doomed.hear()
        with Child(reader, card, bystander.hear(), namespace=hosts.b, **TCP) as survivor:
            assert survivor.hear() == "reading"
            lose(survivor, hosts.cut)
            assert survivor.hear() == "the bystander serves"
            hosts.mend()
            survivor.tell({**card, "seed": 1})
            assert survivor.result() == "read again"
