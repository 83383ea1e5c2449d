// Declares the functions that add each file's Python classes to the module. Threads: only the
// thread that imports the module calls these functions, with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

namespace viaduct {
struct KvLayout;
}

namespace viaduct::python {

namespace py = pybind11;

class AgentState;

void bindErrors(py::module_& module);
void bindLog(py::module_& module);
void bindDoorbell(py::module_& module);
void bindSettings(py::module_& module);
void bindValues(py::module_& module);
void bindPin(py::module_& module);
void bindBlocks(py::module_& module);
void bindPeer(py::module_& module);
void bindTransfer(py::module_& module);
void bindDigests(py::module_& module);
void bindMarks(py::module_& module);
void bindKvLayouts(py::module_& module);
void bindKvParts(py::module_& module);
// Adds the methods that name and select parts of a parcel.
void bindPartsOf(py::class_<KvLayout>& layout);
void bindLease(py::module_& module);
void bindParcels(py::module_& module);
void bindCards(py::module_& module);
void bindAgent(py::module_& module);
// Adds the methods that export and revoke cards.
void bindCardsOf(py::class_<AgentState, std::shared_ptr<AgentState>>& agent);
// Adds the methods that lend and borrow.
void bindLeasesOf(py::class_<AgentState, std::shared_ptr<AgentState>>& agent);
// Adds the methods that publish and fetch.
void bindParcelsOf(py::class_<AgentState, std::shared_ptr<AgentState>>& agent);
// Adds the method that opens streams of marks.
void bindMarksOf(py::class_<AgentState, std::shared_ptr<AgentState>>& agent);
// Adds the methods that digest and check blocks.
void bindDigestsOf(py::class_<AgentState, std::shared_ptr<AgentState>>& agent);
void bindNixl(py::module_& module);

}  // namespace viaduct::python
