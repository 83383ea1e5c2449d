"""Runs torch.distributed's own TCPStore until stdin ends. Prints "port N", or "absent REASON"."""
import sys

try:
    from torch.distributed import TCPStore
except ImportError as why:
    print(f"absent {why}", flush=True)
    sys.exit()
# 1.x wants a number of clients, and does not wait for them with this argument.
store = TCPStore("127.0.0.1", int(sys.argv[1]), 1, True, wait_for_workers=False)
print(f"port {sys.argv[1]}", flush=True)
sys.stdin.read()
