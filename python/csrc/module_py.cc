#include "bindings.h"

PYBIND11_MODULE(_core, module) {
  using namespace viaduct::python;
  pybind11::options options;
  options.disable_function_signatures();  // the docstrings begin with signatures for inspect
  module.doc() = "The compiled extension module of the package viaduct.";
  module.attr("__version__") = VIADUCT_VERSION;
  module.attr("__module__") = "viaduct";  // users import the classes from there
  bindSettings(module);
  bindValues(module);
  bindPin(module);
  bindBlocks(module);
  bindPeer(module);
  bindTransfer(module);
  bindDigests(module);
  bindMarks(module);
  bindKvLayouts(module);
  bindKvStreams(module);
  bindLease(module);
  bindAgent(module);
  py::delattr(module, "__module__");
  bindDoorbell(module);
  bindErrors(module);
  bindLog(module);
  bindNixl(module);
}
