"""Allocates, fills and compares memory by its address, for tests and examples."""

from __future__ import annotations

from viaduct._core.nixl import ba_buf, free_passthru, malloc_passthru, same_bytes

__all__ = ["ba_buf", "free_passthru", "malloc_passthru", "verify_transfer"]


def verify_transfer(local_addr: int, remote_addr: int, size: int) -> None:
    """Raises AssertionError if the bytes at two addresses of this process differ."""
    if not same_bytes(local_addr, remote_addr, size):
        raise AssertionError(f"the {size} bytes at {local_addr:#x} and at {remote_addr:#x} differ")
