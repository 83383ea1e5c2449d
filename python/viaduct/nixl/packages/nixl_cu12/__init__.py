"""Re-exports the package nixl under its CUDA 12 name. One build serves all CUDA versions."""

import sys

from nixl import *  # noqa: F403
from nixl import __all__, _api, _bindings, _utils, logging

for _module in (_api, _bindings, _utils, logging):
    sys.modules[_module.__name__.replace("nixl", __name__, 1)] = _module
