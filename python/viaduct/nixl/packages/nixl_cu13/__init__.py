"""The package nixl, under the name of its build for CUDA 13. Viaduct has one build for all."""

import sys

from nixl import *  # noqa: F403
from nixl import __all__, _api, _bindings, _utils, logging

for _module in (_api, _bindings, _utils, logging):
    sys.modules[_module.__name__.replace("nixl", __name__, 1)] = _module
