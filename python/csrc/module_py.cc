#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "agent_state.h"
#include "bindings.h"

namespace viaduct::python {
namespace {

void sayUninitialised() {
  PyErr_SetString(PyExc_TypeError,
                  "the object was never initialised: __new__() made it, and __init__() was not "
                  "called; call the class");
}

// pybind11 calls this function to allocate the value of an object that has none. Otherwise pybind11
// would hand out memory that no constructor has seen.
void* refuseUninitialised(std::size_t) {
  sayUninitialised();
  throw py::error_already_set();
}

// pybind11's own buffer function cannot raise the TypeError, so check the object before that call.
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

// The names that the package viaduct offers its users: all names so far that are not private.
py::list publicNames(const py::module_& module) {
  py::list names;
  for (const auto& [name, value] : py::reinterpret_borrow<py::dict>(module.attr("__dict__")))
    if (!name.cast<std::string_view>().starts_with('_')) names.append(name);
  return names;
}

}  // namespace

std::string docstringOf(const py::detail::function_record& function, const Doc& doc) {
  std::vector<std::string> parameters;
  // inspect takes a parameter with a dollar as bound. For a class, inspect removes the first
  // parameter itself.
  if (function.is_method)
    parameters.emplace_back(function.name == std::string_view("__init__") ? "self, /" : "$self, /");
  for (std::size_t i = parameters.size(); i < function.args.size(); ++i) {
    const auto& argument = function.args[i];
    if (i == function.nargs_pos) parameters.emplace_back("*");
    parameters.emplace_back(argument.name);
    if (argument.value) parameters.back() += '=' + py::repr(argument.value).cast<std::string>();
  }
  return fmt::format("{}({})\n--\n\n{}", function.name, fmt::join(parameters, ", "), doc.text);
}

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
  bindPins(module);
  bindBlocks(module);
  bindPeer(module);
  bindTransfer(module);
  bindKvLayouts(module);
  bindKvParts(module);
  bindParcels(module);
  AgentClass agent = bindAgent(module);
  bindCards(module, agent);
  bindDigests(module, agent);
  bindLeases(module, agent);
  bindMarks(module, agent);
  bindParcelsOf(agent);
  py::delattr(module, "__module__");
  module.attr("__all__") = publicNames(module);
  bindDoorbell(module);
  bindErrors(module);
  bindLog(module);
  bindNixl(module);
  refuseUninitialisedObjects(module);
}
