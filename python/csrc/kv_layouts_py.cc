#include <fmt/format.h>
#include <pybind11/stl.h>
#include <viaduct/kv_models.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "kv_layouts.h"
#include "rows.h"
#include "selection.h"

namespace viaduct::python {
namespace {

constexpr auto kLayout = "KvLayout";

constexpr std::array kArrangements{std::pair{"apart", KvArrangement::kApart},
                                   std::pair{"together", KvArrangement::kTogether},
                                   std::pair{"rows", KvArrangement::kRows}};

KvArrangement arrangementOf(const std::string& name) {
  for (const auto& [known, value] : kArrangements)
    if (name == known) return value;
  raiseMisuse("arrange", fmt::format("{:?} is no arrangement", name),
              "use \"apart\", \"together\" or \"rows\"");
}

KvOrder orderOf(const std::string& name) {
  if (name == "nhd") return KvOrder::kNhd;
  if (name == "hnd") return KvOrder::kHnd;
  raiseMisuse(kLayout, fmt::format("{:?} is no order", name), "use \"nhd\" or \"hnd\"");
}

const char* orderName(const KvLayout& layout) {
  return layout.order == KvOrder::kNhd ? "nhd" : "hnd";
}

KvCache cacheOf(const py::object& layers, std::uint32_t head_size, std::uint32_t kv_heads,
                std::uint32_t tensors, std::uint32_t element_bytes, std::uint32_t entry_tokens,
                std::string name) {
  return {.name = std::move(name),
          .layers = parseIndices(layers),
          .tensors = tensors,
          .kv_heads = kv_heads,
          .head_size = head_size,
          .element_bytes = element_bytes,
          .entry_tokens = entry_tokens};
}

using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

KvGroup groupOf(std::vector<KvCache> caches, std::uint32_t block_tokens, std::uint32_t window,
                std::uint64_t blocks, const Places& places) {
  KvGroup group{.caches = std::move(caches),
                .block_tokens = block_tokens,
                .window = window,
                .blocks = blocks};
  for (const auto& [address, stride] : places)
    group.places.push_back({.address = address, .stride = stride});
  return group;
}

bool hasPlaces(const KvLayout& layout) {
  for (const KvGroup& group : layout.groups)
    if (!group.places.empty()) return true;
  return false;
}

// The functions of the library need checked layouts. So check each layout when it is made.
KvLayout checked(KvLayout layout) {
  if (hasPlaces(layout))
    check(checkKvLayout(layout));
  else  // a pool of one block has the same shape, and can be checked
    static_cast<void>(valueOf(arrangeKv(layout, KvArrangement::kRows, 0, 1)));
  return layout;
}

KvLayout layoutOf(std::vector<KvGroup> groups, const std::string& order, std::uint32_t tp,
                  std::uint32_t rank, std::uint32_t page_align) {
  return checked({.groups = std::move(groups),
                  .order = orderOf(order),
                  .tp = tp,
                  .rank = rank,
                  .page_align = page_align});
}

KvLayout layoutOfModel(const std::string& name, const std::string& order, std::uint32_t tp,
                       std::uint32_t rank, std::optional<std::uint32_t> block_tokens) {
  KvModel model = valueOf(kvModel(name));
  if (block_tokens && model.own_blocks)
    raiseMisuse(kLayout, fmt::format("{} prescribes its blocks", model.name),
                "leave block_tokens out");
  if (block_tokens)
    for (KvGroup& group : model.layout.groups) group.block_tokens = *block_tokens;
  model.layout.order = orderOf(order);
  model.layout.tp = tp;
  model.layout.rank = rank;
  return checked(std::move(model.layout));
}

KvLayout arrange(const KvLayout& layout, const std::string& arrangement, std::uint64_t address,
                 std::uint64_t blocks) {
  return valueOf(arrangeKv(layout, arrangementOf(arrangement), address, blocks));
}

py::tuple extentOf(const KvLayout& layout) {
  if (!hasPlaces(layout))
    raiseMisuse("extent", "the layout has no places", "take the layout that arrange() returns");
  const Extent extent = kvExtent(layout);
  return py::make_tuple(extent.address, extent.bytes);
}

template <class T>
const T& at(const std::vector<T>& list, std::size_t number, const char* what) {
  if (number < list.size()) return list[number];
  throw py::index_error(
      fmt::format("there is no {} {} in a list of {}", what, number, list.size()));
}

std::uint64_t pageBytes(const KvLayout& layout, std::size_t group, std::size_t cache) {
  const KvGroup& of = at(layout.groups, group, "group");
  return kvPageBytes(layout, of, at(of.caches, cache, "cache"));
}

py::tuple placesOf(const KvGroup& group) {
  py::tuple places(group.places.size());
  for (std::size_t i = 0; i < group.places.size(); ++i)
    places[i] = py::make_tuple(group.places[i].address, group.places[i].stride);
  return places;
}

py::tuple sourceRanks(const KvLayout& source, const KvLayout& destination) {
  return py::tuple(py::cast(valueOf(kvSourceRanks(source, destination))));
}

KvReshard planReshard(const KvLayout& source, const KvLayout& destination) {
  return valueOf(unlocked([&] { return KvReshard::plan(source, destination); }));
}

py::tuple select(const KvReshard& plan, const py::sequence& groups) {
  const auto blocks = blockTablesOf(groups);
  return tupleOf(valueOf(unlocked([&] { return plan.select(blocks); })));
}

py::object blocksObject(const Selection& selection) {
  return py::cast(std::make_shared<BlockList>(selection.blocks, py::object()));
}

constexpr auto kCacheClass = R"(The KV caches of some layers that are alike.

    viaduct.KvCache(range(32), 128, kv_heads=8)               # K and V in bf16
    viaduct.KvCache(range(61), 576, tensors=1, name="latent") # MLA: a latent row
)";

constexpr auto kGroupClass = R"(KV caches that share one block table.

    viaduct.KvGroup([cache], block_tokens=16)

KvLayout.arrange() fills in `blocks` and `places`.)";

constexpr auto kLayoutClass =
    R"(The KV cache of one tensor-parallel rank: where each block of each layer lies.

    cache = viaduct.KvCache(range(32), 128, kv_heads=8)
    layout = viaduct.KvLayout([viaduct.KvGroup([cache])], order="hnd", tp=4, rank=1)
    layout = viaduct.KvLayout.of_model("Llama-3.1-8B", order="hnd", tp=4, rank=1)   # the same
    layout = layout.arrange("apart", pin.address, blocks=1000)

The order in a page is "nhd", token after token, or "hnd", head after head. The size of a page is a
multiple of `page_align`. A layout never changes. docs/kv.md explains the fields.)";

constexpr Doc kOfModel{R"(
Returns the layout of a known model, without places. kv_models() lists the names. Blocks have 16
tokens, if neither `block_tokens` nor the model says otherwise.)"};

constexpr Doc kArrange{R"(
Returns the same layout with places in a pool of so many blocks, which starts at `address`.

"apart": each tensor of each layer has a pool of its own. "together": each layer has a pool, with the
pages of K and V side by side. "rows": a block is one row with the pages of all layers.)"};

constexpr auto kReshardClass =
    R"(A plan that moves blocks from one layout to another. Made once, for all requests.

    reshard = viaduct.KvReshard(source, destination)
    theirs, ours = reshard.select([(remote_table, local_table)])
    agent.read(peer, ours, theirs, timeout=10)

InvalidError names the field that keeps the layouts from being mapped onto each other.)";

constexpr Doc kSelect{R"(
Returns (source, destination): Blocks at both ends, for plan(). `groups` has a row for each group:
(source blocks, destination blocks), or None for no blocks.

A row has the numbers of the blocks in the order of their tokens. A third item is the first token to
move; the first block of each end has this token.)"};

constexpr Doc kSourceRanks{R"(
Returns the ranks of the source from which this rank of the destination takes its heads, as a
tuple.)"};

void bindLayout(py::module_& module) {
  py::class_<KvLayout> layouts(module, "KvLayout", kLayoutClass);
  layouts
      .def(py::init(&layoutOf), py::arg("groups"), py::kw_only(), py::arg("order") = "nhd",
           py::arg("tp") = 1, py::arg("rank") = 0, py::arg("page_align") = 1, Doc{})
      .def_static("of_model", layoutOfModel, py::arg("name"), py::kw_only(),
                  py::arg("order") = "nhd", py::arg("tp") = 1, py::arg("rank") = 0,
                  py::arg("block_tokens") = py::none(), kOfModel)
      .def("arrange", arrange, py::arg("arrangement"), py::arg("address"), py::arg("blocks"),
           kArrange)
      .def_property_readonly(
          "groups", [](const KvLayout& layout) { return py::tuple(py::cast(layout.groups)); },
          "The groups, as a tuple of KvGroup.")
      .def_property_readonly("order", orderName, "The order of the entries in a page.")
      .def_readonly("tp", &KvLayout::tp, "The number of tensor-parallel ranks.")
      .def_readonly("rank", &KvLayout::rank, "The rank of this cache.")
      .def_readonly("page_align", &KvLayout::page_align,
                    "The size of a page is a multiple of this number of bytes.")
      .def_property_readonly("extent", extentOf,
                             "(address, bytes) of the memory from the first page to the end of "
                             "the last one.")
      .def("page_bytes", pageBytes, py::arg("group") = 0, py::arg("cache") = 0,
           Doc{"Returns the bytes of a page: one block of one tensor of one layer."})
      .def(
          "blocks_of",
          [](const KvLayout& layout, std::uint64_t tokens, std::size_t group) {
            return kvBlocksOf(at(layout.groups, group, "group"), tokens);
          },
          py::arg("tokens"), py::arg("group") = 0,
          Doc{"Returns how many blocks a request of so many tokens has in this group."})
      .def("__repr__", [](const KvLayout& layout) {
        return fmt::format("<viaduct.KvLayout of {} groups, {}, rank {} of {}{}>",
                           layout.groups.size(), orderName(layout), layout.rank, layout.tp,
                           hasPlaces(layout) ? "" : ", without places");
      });
  bindPartsOf(layouts);
}

void bindGroup(py::module_& module) {
  py::class_<KvCache>(module, "KvCache", kCacheClass)
      .def(py::init(&cacheOf), py::arg("layers"), py::arg("head_size"), py::kw_only(),
           py::arg("kv_heads") = 1, py::arg("tensors") = 2, py::arg("element_bytes") = 2,
           py::arg("entry_tokens") = 1, py::arg("name") = "kv", Doc{})
      .def_property_readonly(
          "layers", [](const KvCache& cache) { return py::tuple(py::cast(cache.layers)); },
          "The numbers of the layers in the model, ascending, as a tuple.")
      .def_readonly("head_size", &KvCache::head_size, "Elements of one head of one token.")
      .def_readonly("kv_heads", &KvCache::kv_heads,
                    "The heads of the model. Tensor-parallel ranks divide them.")
      .def_readonly("tensors", &KvCache::tensors,
                    "The tensors of each layer: 2 for K and V, 1 for a latent row.")
      .def_readonly("element_bytes", &KvCache::element_bytes,
                    "The bytes of an element: 2 for bf16.")
      .def_readonly("entry_tokens", &KvCache::entry_tokens, "The tokens that share one entry.")
      .def_readonly("name", &KvCache::name, "The name in errors.");
  py::class_<KvGroup>(module, "KvGroup", kGroupClass)
      .def(py::init(&groupOf), py::arg("caches"), py::kw_only(), py::arg("block_tokens") = 16,
           py::arg("window") = 0, py::arg("blocks") = 0, py::arg("places") = py::tuple(), Doc{})
      .def_property_readonly(
          "caches", [](const KvGroup& group) { return py::tuple(py::cast(group.caches)); },
          "The caches, as a tuple of KvCache.")
      .def_readonly("block_tokens", &KvGroup::block_tokens, "The tokens of a block.")
      .def_readonly("window", &KvGroup::window, "The tokens that attention looks back; 0: all.")
      .def_readonly("blocks", &KvGroup::blocks, "The number of blocks in the pool.")
      .def_property_readonly("places", placesOf,
                             "A tuple of (address, stride), by cache, then by layer, then by "
                             "tensor. Block b of a tensor starts at address + b * stride.");
}

}  // namespace

std::vector<KvBlocks> blockTablesOf(const py::sequence& groups) {
  std::vector<KvBlocks> blocks;
  for (const py::handle item : groups) {
    KvBlocks& next = blocks.emplace_back();
    if (item.is_none()) continue;
    const auto size = PyTuple_Check(item.ptr()) != 0 ? PyTuple_GET_SIZE(item.ptr()) : 0;
    if (size != 2 && size != 3)
      raiseWrongType("select", item,
                     "give a list with (source blocks, destination blocks) for each group, "
                     "with the first token as a third item, or None");
    const py::tuple row = py::reinterpret_borrow<py::tuple>(item);
    next.source = Indices(parseIndices(row[0]));
    next.destination = Indices(parseIndices(row[1]));
    if (size == 3) next.first_token = parseUnsigned(row[2], "first token");
  }
  return blocks;
}

py::tuple tupleOf(const KvSelections& taken) {
  return py::make_tuple(blocksObject(taken.source), blocksObject(taken.destination));
}

void bindKvLayouts(py::module_& module) {
  bindGroup(module);
  bindLayout(module);
  py::class_<KvReshard>(module, "KvReshard", kReshardClass)
      .def(py::init(&planReshard), py::arg("source"), py::arg("destination"), Doc{})
      .def("select", select, py::arg("groups"), kSelect);
  module.def("kv_source_ranks", sourceRanks, py::arg("source"), py::arg("destination"),
             kSourceRanks);
  module.def(
      "kv_models", [] { return py::tuple(py::cast(kvModelNames())); },
      Doc{"Returns the names of the models that KvLayout.of_model() knows, as a tuple."});
}

}  // namespace viaduct::python
