#include <fmt/format.h>
#include <pybind11/stl.h>
#include <viaduct/kv_stream.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "end_handle.h"
#include "errors.h"
#include "gil.h"
#include "kv_layouts.h"
#include "rows.h"

namespace viaduct::python {
namespace {

// The state behind the Python class KvLayers. The layouts say which pins the streams use.
struct PlannedLayers {
  KvLayout source, destination;
  KvLayers plan;
};

PlannedLayers planLayers(const KvLayout& source, const KvLayout& destination) {
  auto plan = unlocked([&] { return KvLayers::plan(source, destination); });
  return {.source = source, .destination = destination, .plan = valueOf(std::move(plan))};
}

py::list selectLayers(const PlannedLayers& layers, const py::sequence& groups) {
  const auto blocks = blockTablesOf(groups);
  py::list taken;
  for (const auto& layer : valueOf(unlocked([&] { return layers.plan.select(blocks); })))
    taken.append(tupleOf(layer));
  return taken;
}

std::vector<std::shared_ptr<const PinState>> pinsOf(const AgentState& agent,
                                                    const KvLayout& layout) {
  std::vector<std::shared_ptr<const PinState>> pins;
  for (const KvGroup& group : layout.groups)
    for (const KvPlace& place : group.places) {
      auto pin = agent.pinAt(place.address);  // open() refuses memory that is not pinned
      if (pin && (pins.empty() || pins.back() != pin)) pins.push_back(std::move(pin));
    }
  return pins;
}

// Opens the end that has the transfers. `here` is the layout of this process.
template <class End, KvLayout PlannedLayers::* here>
std::unique_ptr<EndHandle<End>> openPlanned(const KnownPeer& peer, const PlannedLayers& layers,
                                            const py::sequence& blocks, std::uint64_t stream,
                                            std::string name, std::string require) {
  AgentState& state = *peer.agent;
  state.need("open");
  const auto tables = blockTablesOf(blocks);
  auto pins = pinsOf(state, layers.*here);
  KvRequest request{.stream = stream, .name = std::move(name), .require = std::move(require)};
  auto end = unlocked(
      [&] { return End::open(state.agent, peer.peer, layers.plan, tables, std::move(request)); });
  return std::make_unique<EndHandle<End>>(peer.agent, valueOf(std::move(end)), std::move(pins));
}

// Opens the end without transfers.
template <class End>
std::unique_ptr<EndHandle<End>> openUnplanned(const KnownPeer& peer, const py::object& layers,
                                              std::uint64_t stream, std::string name) {
  AgentState& state = *peer.agent;
  state.need("open");
  const std::vector<std::uint32_t> numbers = py::isinstance<PlannedLayers>(layers)
                                                 ? layers.cast<const PlannedLayers&>().plan.layers()
                                                 : parseIndices(layers);
  KvRequest request{.stream = stream, .name = std::move(name)};
  auto end =
      unlocked([&] { return End::open(state.agent, peer.peer, numbers, std::move(request)); });
  return std::make_unique<EndHandle<End>>(peer.agent, valueOf(std::move(end)));
}

// Waits without the GIL in `call(end, deadline)`.
template <class End, class Call>
void waitFor(EndHandle<End>& handle, const char* operation, const py::object& timeout,
             const Call& call) {
  handle.agent->need(operation);
  check(waitUnlocked(waitLimitOf(operation, timeout),
                     [&](Deadline until) { return call(*handle.end, until); }));
}

template <class End>
void ready(EndHandle<End>& handle, std::uint32_t layer) {
  handle.agent->need("ready");
  check(unlocked([&] { return handle.end->ready(layer); }));
}

template <class End>
void waitLayer(EndHandle<End>& handle, std::uint32_t layer, const py::object& timeout) {
  waitFor(handle, "wait_layer", timeout,
          [&](End& end, Deadline until) { return end.waitLayer(layer, until); });
}

template <class End>
void waitAll(EndHandle<End>& handle, const py::object& timeout) {
  waitFor(handle, "wait_all", timeout, [](End& end, Deadline until) { return end.waitAll(until); });
}

template <class End>
void cancel(EndHandle<End>& handle, const std::string& why) {
  handle.agent->need("cancel");
  unlocked([&] { handle.end->cancel(why); });
}

template <class End>
void cancelAndWait(EndHandle<End>& handle, const std::string& why, const py::object& timeout) {
  waitFor(handle, "cancel", timeout,
          [&](End& end, Deadline until) { return end.cancel(why, until); });
}

constexpr auto kLayersClass =
    R"(A plan between two layouts for each layer that both have. Made once, for all requests.

    layers = viaduct.KvLayers(source, destination)
    layers.layers                                  # the numbers of these layers, as a tuple)";

constexpr auto kSelectLayers = R"(select($self, /, groups)
--

Returns a pair (source, destination) of Blocks for each of `layers`, as KvReshard.select() does for
all layers together.)";

constexpr auto kPushClass =
    R"(Writes the KV cache of a request layer by layer, at the source. The destination has a KvArrival.

    push = viaduct.KvPush(peer, layers, [(our_table, their_table)], stream=1, name="8a17")
    push.ready(0)                     # from any thread, when layer 0 is computed
    push.wait(timeout=10)             # the blocks may be used again

`stream` names the request between the two agents. Use each number once in a session. `layers` is a
KvLayers, and `blocks` is what its select() takes. `name` stands in errors, and `require` is as in
Agent.plan(). Garbage collection cancels a request that is not complete.)";

constexpr auto kArrivalClass =
    R"(Waits for the layers of a request that the source pushes, at the destination.

    arrival = viaduct.KvArrival(peer, layers, stream=1, name="8a17")
    arrival.wait_layer(0, timeout=10)
    arrival.wait_all(timeout=10)

`layers` is a KvLayers, or its `layers` from the source. With several source ranks, open one for each.
Garbage collection cancels a request that is not complete.)";

constexpr auto kOfferClass =
    R"(Tells the destination which layers of a request it may read, at the source.

    offer = viaduct.KvOffer(peer, layers, stream=1, name="8a17")
    offer.ready(0)
    offer.wait_read(timeout=10)       # the blocks may be used again

The destination has a KvPull. Garbage collection cancels a request that is not complete.)";

constexpr auto kPullClass =
    R"(Reads the KV cache of a request layer by layer, at the destination. The source has a KvOffer.

    pull = viaduct.KvPull(peer, layers, [(their_table, our_table)], stream=1, name="8a17")
    pull.wait_layer(0, timeout=10)    # a layer is read when the source says that it is ready
    pull.wait_all(timeout=10)

The arguments are those of KvPush. Garbage collection cancels a request that is not complete.)";

constexpr auto kReadyToWrite = R"(ready($self, /, layer)
--

The layer is complete here: writes it, and then tells the destination. Once for each layer.)";

constexpr auto kReadyToRead = R"(ready($self, /, layer)
--

The layer is complete here: tells the destination.)";

constexpr auto kWaitWritten = R"(wait($self, /, timeout=None)
--

Waits until the layers that were ready so far have been written.)";

constexpr auto kWaitLayer = R"(wait_layer($self, /, layer, timeout=None)
--

Waits until the layer is here. If the request has ended without it, raises the reason. The error
names the layer and the request.)";

constexpr auto kWaitAll = R"(wait_all($self, /, timeout=None)
--

Waits until all layers are here, as wait_layer() does.)";

constexpr auto kWaitCount = R"(wait_count($self, /, count, timeout=None)
--

Waits until that many layers are here, as wait_layer() does.)";

constexpr auto kCancelRequest = R"(cancel($self, /, why)
--

Ends the request at both ends.)";

constexpr auto kCancelAndWait = R"(cancel($self, /, why, timeout=None)
--

Ends the request at both ends, and waits until the other end touches the blocks no more. After
TimeoutError it still may.)";

constexpr auto kOpenPlanned =
    "__init__(self, /, peer, layers, blocks, *, stream, name='', require='')\n--\n\n";
constexpr auto kOpenUnplanned = "__init__(self, /, peer, layers, *, stream, name='')\n--\n\n";

void bindPushes(py::module_& module) {
  withAgent(py::class_<EndHandle<KvPush>>(module, "KvPush", kPushClass))
      .def(py::init(&openPlanned<KvPush, &PlannedLayers::source>), py::arg("peer"),
           py::arg("layers"), py::arg("blocks"), py::kw_only(), py::arg("stream"),
           py::arg("name") = "", py::arg("require") = "", kOpenPlanned)
      .def("ready", ready<KvPush>, py::arg("layer"), kReadyToWrite)
      .def(
          "wait",
          [](EndHandle<KvPush>& push, const py::object& timeout) {
            waitFor(push, "wait", timeout,
                    [](KvPush& end, Deadline until) { return end.wait(until); });
          },
          py::arg("timeout") = py::none(), kWaitWritten)
      .def("cancel", cancel<KvPush>, py::arg("why"), kCancelRequest);
  withAgent(py::class_<EndHandle<KvArrival>>(module, "KvArrival", kArrivalClass))
      .def(py::init(&openUnplanned<KvArrival>), py::arg("peer"), py::arg("layers"), py::kw_only(),
           py::arg("stream"), py::arg("name") = "", kOpenUnplanned)
      .def("wait_layer", waitLayer<KvArrival>, py::arg("layer"), py::arg("timeout") = py::none(),
           kWaitLayer)
      .def(
          "wait_count",
          [](EndHandle<KvArrival>& arrival, std::uint32_t count, const py::object& timeout) {
            waitFor(arrival, "wait_count", timeout,
                    [&](KvArrival& end, Deadline until) { return end.waitCount(count, until); });
          },
          py::arg("count"), py::arg("timeout") = py::none(), kWaitCount)
      .def("wait_all", waitAll<KvArrival>, py::arg("timeout") = py::none(), kWaitAll)
      .def(
          "has",
          [](const EndHandle<KvArrival>& arrival, std::uint32_t layer) {
            return arrival.end->has(layer);
          },
          py::arg("layer"), "has($self, /, layer)\n--\n\nReturns whether the layer has arrived.")
      .def_property_readonly(
          "count", [](const EndHandle<KvArrival>& arrival) { return arrival.end->count(); },
          "How many layers have arrived.")
      .def("cancel", cancelAndWait<KvArrival>, py::arg("why"), py::arg("timeout") = py::none(),
           kCancelAndWait);
}

void bindPulls(py::module_& module) {
  withAgent(py::class_<EndHandle<KvOffer>>(module, "KvOffer", kOfferClass))
      .def(py::init(&openUnplanned<KvOffer>), py::arg("peer"), py::arg("layers"), py::kw_only(),
           py::arg("stream"), py::arg("name") = "", kOpenUnplanned)
      .def("ready", ready<KvOffer>, py::arg("layer"), kReadyToRead)
      .def(
          "wait_read",
          [](EndHandle<KvOffer>& offer, const py::object& timeout) {
            waitFor(offer, "wait_read", timeout,
                    [](KvOffer& end, Deadline until) { return end.waitRead(until); });
          },
          py::arg("timeout") = py::none(),
          "wait_read($self, /, timeout=None)\n--\n\nWaits until the destination has read all "
          "layers, so that their blocks are free.")
      .def("cancel", cancelAndWait<KvOffer>, py::arg("why"), py::arg("timeout") = py::none(),
           kCancelAndWait);
  withAgent(py::class_<EndHandle<KvPull>>(module, "KvPull", kPullClass))
      .def(py::init(&openPlanned<KvPull, &PlannedLayers::destination>), py::arg("peer"),
           py::arg("layers"), py::arg("blocks"), py::kw_only(), py::arg("stream"),
           py::arg("name") = "", py::arg("require") = "", kOpenPlanned)
      .def(
          "read_all",
          [](EndHandle<KvPull>& pull) {
            pull.agent->need("read_all");
            check(unlocked([&] { return pull.end->readAll(); }));
          },
          "read_all($self, /)\n--\n\nReads all layers now. The caller knows that they are complete "
          "at the source.")
      .def("wait_layer", waitLayer<KvPull>, py::arg("layer"), py::arg("timeout") = py::none(),
           kWaitLayer)
      .def("wait_all", waitAll<KvPull>, py::arg("timeout") = py::none(), kWaitAll)
      .def("cancel", cancel<KvPull>, py::arg("why"), kCancelRequest);
}

}  // namespace

void bindKvStreams(py::module_& module) {
  py::class_<PlannedLayers>(module, "KvLayers", kLayersClass)
      .def(py::init(&planLayers), py::arg("source"), py::arg("destination"),
           "__init__(self, /, source, destination)\n--\n\n")
      .def_property_readonly(
          "layers",
          [](const PlannedLayers& layers) { return py::tuple(py::cast(layers.plan.layers())); },
          "The numbers of the layers that are moved, as a tuple.")
      .def("select", selectLayers, py::arg("groups"), kSelectLayers);
  bindPushes(module);
  bindPulls(module);
}

}  // namespace viaduct::python
