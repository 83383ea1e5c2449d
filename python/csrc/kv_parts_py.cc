#include <pybind11/stl.h>
#include <viaduct/kv_parts.h>

#include <memory>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "kv_layouts.h"
#include "parcel_parts.h"
#include "rows.h"
#include "selection.h"

namespace viaduct::python {
namespace {

py::tuple partsOf(const KvLayout& layout) { return tupleOf(valueOf(kvParts(layout))); }

py::dict pagesOf(const KvLayout& layout, const py::sequence& groups) {
  std::vector<Indices> blocks;
  for (const py::handle group : groups) blocks.emplace_back(parseIndices(group));
  auto pages = valueOf(unlocked([&] { return kvPages(layout, blocks); }));
  py::dict out;
  for (PublishedPart& part : pages)
    out[tupleOf(part.part)] =
        SelectedBlocks{std::make_shared<BlockList>(std::move(part.blocks.blocks), py::object()),
                       std::move(part.blocks.indices)};
  return out;
}

KvLayers planLayers(const KvLayout& source, const KvLayout& destination) {
  return valueOf(unlocked([&] { return KvLayers::plan(source, destination); }));
}

py::tuple intoOf(const KvLayers& layers, const py::sequence& groups) {
  const auto blocks = blockTablesOf(groups);
  py::dict into, slices;
  for (PartInto& part : valueOf(unlocked([&] { return layers.into(blocks); }))) {
    const py::tuple name = tupleOf(part.part);
    into[name] = std::make_shared<BlockList>(std::move(part.into.blocks), py::object());
    slices[name] = std::make_shared<BlockList>(std::move(part.slice), py::object());
  }
  return py::make_tuple(into, slices);
}

constexpr Doc kParts{R"(
Returns the parts of a parcel that has the KV cache of this rank, as a tuple of (rank, layer).

A layer with caches in several groups is a part of each group. Each one after the first has 65536
more than the one before.)"};

constexpr Doc kPages{R"(
Returns the pages of a request for each of parts(), as a dict for Agent.publish() and
PublishedParcel.ready(). `blocks` has for each group the numbers of the blocks, in the order of their
tokens.)"};

constexpr auto kLayersClass =
    R"(A plan between two layouts for each part of a parcel. Made once, for all requests.

    layers = viaduct.KvLayers(source, destination)
    into, slices = layers.into([(range(len(table)), table)])
    fetch = agent.fetch(peer, "request 8a17", into, slices=slices)
    fetch.wait_part(layers.parts[0], timeout=10)

The source publishes KvLayout.pages(). `source` needs no places.)";

constexpr Doc kInto{R"(
Returns (into, slices) for Agent.fetch(). `groups` is what KvReshard.select() takes. Its source
blocks are numbers in the part, from 0 on.)"};

}  // namespace

void bindPartsOf(py::class_<KvLayout>& layout) {
  layout.def("parts", partsOf, kParts).def("pages", pagesOf, py::arg("blocks"), kPages);
}

void bindKvParts(py::module_& module) {
  py::class_<KvLayers>(module, "KvLayers", kLayersClass)
      .def(py::init(&planLayers), py::arg("source"), py::arg("destination"), Doc{})
      .def_property_readonly(
          "parts", [](const KvLayers& layers) { return tupleOf(layers.parts()); },
          "The parts that move between the two ranks, as a tuple of (rank, layer).")
      .def("into", intoOf, py::arg("groups"), kInto);
}

}  // namespace viaduct::python
