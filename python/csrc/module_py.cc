#include "bindings.h"

namespace viaduct::python {
namespace {

void sayUninitialised() {
  PyErr_SetString(PyExc_TypeError,
                  "the object was never initialised: __new__() made it, and __init__() was not "
                  "called; call the class");
}

// pybind11 calls it to allocate the value of an object that has none. Without it, pybind11 hands
// out memory that no constructor has seen.
void* refuseUninitialised(std::size_t) {
  sayUninitialised();
  throw py::error_already_set();
}

// pybind11 lets no exception through its own view of an object.
int viewInitialised(PyObject* self, Py_buffer* view, int flags) {
  if (reinterpret_cast<py::detail::instance*>(self)->get_value_and_holder().value_ptr() != nullptr)
    return py::detail::pybind11_getbuffer(self, view, flags);
  sayUninitialised();
  view->obj = nullptr;
  return -1;
}

// Lets objects that only __new__() has made raise TypeError, for all classes of the module.
void refuseUninitialisedObjects(const py::module_& module) {
  for (const auto& [name, value] : py::reinterpret_borrow<py::dict>(module.attr("__dict__"))) {
    if (PyModule_Check(value.ptr()) != 0)
      refuseUninitialisedObjects(py::reinterpret_borrow<py::module_>(value));
    if (PyType_Check(value.ptr()) == 0) continue;
    auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
    py::detail::type_info* const info = py::detail::get_type_info(type);
    if (info == nullptr) continue;
    info->operator_new = refuseUninitialised;
    if (info->get_buffer != nullptr) type->tp_as_buffer->bf_getbuffer = viewInitialised;
  }
}

}  // namespace
}  // namespace viaduct::python

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
  bindKvParts(module);
  bindLease(module);
  bindParcels(module);
  bindCards(module);
  bindAgent(module);
  py::delattr(module, "__module__");
  bindDoorbell(module);
  bindErrors(module);
  bindLog(module);
  bindNixl(module);
  refuseUninitialisedObjects(module);
}
