// Declares the functions that add each file's Python classes to the module. Threads: only the
// thread that imports the module calls these functions, with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

namespace viaduct {
struct KvLayout;
}

namespace viaduct::python {

namespace py = pybind11;

class AgentState;
using AgentClass = py::class_<AgentState, std::shared_ptr<AgentState>>;

void bindErrors(py::module_& module);
void bindLog(py::module_& module);
void bindDoorbell(py::module_& module);
void bindSettings(py::module_& module);
void bindValues(py::module_& module);
void bindPins(py::module_& module);
void bindBlocks(py::module_& module);
void bindPeer(py::module_& module);
void bindTransfer(py::module_& module);
void bindKvLayouts(py::module_& module);
void bindKvParts(py::module_& module);
// Adds the methods that name and select parts of a parcel.
void bindPartsOf(py::class_<KvLayout>& layout);
void bindParcels(py::module_& module);
AgentClass bindAgent(py::module_& module);
// Each of these functions also adds the methods of its subject to the class Agent.
void bindCards(py::module_& module, AgentClass& agent);
void bindDigests(py::module_& module, AgentClass& agent);
void bindLeases(py::module_& module, AgentClass& agent);
void bindMarks(py::module_& module, AgentClass& agent);
void bindParcelsOf(AgentClass& agent);
void bindNixl(py::module_& module);

// The text of a function in help(). Pass it to def() after the names and defaults of the arguments.
struct Doc {
  const char* text = "";
};
// Makes a docstring from which inspect.signature() reads the arguments.
std::string docstringOf(const py::detail::function_record& function, const Doc& doc);

}  // namespace viaduct::python

template <>
struct pybind11::detail::process_attribute<viaduct::python::Doc>
    : process_attribute_default<viaduct::python::Doc> {
  static void init(const viaduct::python::Doc& doc, function_record* function) {
    static std::string text;  // pybind11 copies the text before it initializes another function
    text = docstringOf(*function, doc);
    function->doc = text.data();
  }
};
