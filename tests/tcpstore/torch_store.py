"""Runs torch.distributed's own TCPStore until stdin ends. Prints "port N", or "absent REASON"."""
import sys

try:
    from torch.distributed import TCPStore
except ImportError as why:
    print(f"absent {why}", flush=True)
    sys.exit()
# torch 1.x requires a number of clients. With wait_for_workers=False it does not wait for them.
store = TCPStore("127.0.0.1", int(sys.argv[1]), 1, True, wait_for_workers=False)
print(f"port {sys.argv[1]}", flush=True)
sys.stdin.read()
