#include "bindings.h"

PYBIND11_MODULE(_core, module) {
  using namespace viaduct::python;
  pybind11::options options;
  options.disable_function_signatures();  // the docstrings begin with one that Python can read
  module.doc() = "The compiled part of the package viaduct.";
  module.attr("__version__") = VIADUCT_VERSION;
  module.attr("__module__") = "viaduct";  // where users find the classes
  bindSettings(module);
  bindValues(module);
  bindPin(module);
  bindBlocks(module);
  bindPeer(module);
  bindTransfer(module);
  bindAgent(module);
  py::delattr(module, "__module__");
  bindNixl(module);
}
