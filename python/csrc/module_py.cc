#include "bindings.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The compiled part of the package viaduct.";
  module.attr("__version__") = VIADUCT_VERSION;
  viaduct::python::bindNixl(module);
}
