#include <fmt/format.h>
#include <pybind11/stl.h>
#include <viaduct/parcel.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "digests.h"
#include "end_handle.h"
#include "errors.h"
#include "gil.h"
#include "parcel_parts.h"
#include "planned_transfer.h"
#include "selection.h"

namespace viaduct::python {
namespace {

// The states behind the Python classes PublishedParcel and ParcelFetch.
using ParcelState = EndHandle<PublishedParcel>;
using FetchState = EndHandle<ParcelFetch>;
using Part = std::pair<std::uint32_t, std::uint32_t>;  // rank, component
using Pins = std::vector<std::shared_ptr<const PinState>>;

ParcelPart partOf(const Part& part) { return {.rank = part.first, .component = part.second}; }

// Adds the pins of the blocks to `pins`, which keep the memory alive.
Selection selectionOf(const py::handle& blocks, const AgentState& state, Pins& pins) {
  Side side = localSideOf(blocks, state);
  for (auto& pin : side.list->pinsOf(state))
    if (pins.empty() || pins.back() != pin) pins.push_back(std::move(pin));
  return {.blocks = side.list->blocks(), .indices = std::move(side.indices)};
}

std::unique_ptr<ParcelState> publish(AgentState& state, const std::string& name,
                                     const py::dict& ready, std::uint64_t version,
                                     std::uint64_t layout, const std::vector<Part>& parts,
                                     std::uint32_t takers, const py::object& life, bool digests,
                                     const KnownPeer* owner, bool at_place) {
  state.need("publish");
  PublishOptions options{.version = version,
                         .layout = layout,
                         .takers = takers,
                         .digests = digests,
                         .at_place = at_place};
  if (owner != nullptr) options.owner = owner->peer;
  if (!life.is_none()) options.life = deadlineOf("publish", life).at() - Clock::now();
  for (const Part& part : parts) options.parts.push_back(partOf(part));
  Pins pins;
  for (const auto& [part, blocks] : ready)
    options.ready.push_back(
        {.part = partOf(part.cast<Part>()), .blocks = selectionOf(blocks, state, pins)});
  auto parcel = unlocked([&] { return state.agent.publish(name, std::move(options)); });
  return std::make_unique<ParcelState>(state.shared_from_this(), valueOf(std::move(parcel)),
                                       std::move(pins));
}

void makeReady(ParcelState& parcel, const Part& part, const py::object& blocks) {
  parcel.agent->need("ready");
  PublishedPart ready{.part = partOf(part),
                      .blocks = selectionOf(blocks, *parcel.agent, parcel.pins)};
  check(unlocked([&] { return parcel.end->ready(std::move(ready)); }));
}

ParcelEnd waitForTakers(ParcelState& parcel, const py::object& timeout) {
  return valueOf(waitUnlocked(waitLimitOf("wait", timeout),
                              [&](Deadline until) { return parcel.end->wait(until); }));
}

void withdraw(ParcelState& parcel) {
  check(unlocked([&] { return parcel.end->withdraw(); }));
}

ParcelGroup groupOf(const py::object& given) {
  if (given.is_none()) return {};
  if (PyTuple_Check(given.ptr()) != 0 && PyTuple_GET_SIZE(given.ptr()) == 3) {
    auto [name, size, rank] = given.cast<std::tuple<std::string, std::uint32_t, std::uint32_t>>();
    return {.name = std::move(name), .size = size, .rank = rank};
  }
  auto [name, size, rank, at_least] =
      given.cast<std::tuple<std::string, std::uint32_t, std::uint32_t, std::uint32_t>>();
  return {.name = std::move(name), .size = size, .rank = rank, .at_least = at_least};
}

std::optional<std::array<std::uint8_t, 16>> ownerOf(const py::object& given) {
  if (given.is_none()) return std::nullopt;
  const NoteBytes bytes("fetch", given);
  std::array<std::uint8_t, 16> id{};
  if (bytes.bytes().size() != id.size())
    raiseMisuse("fetch", fmt::format("an owner of {} bytes", bytes.bytes().size()),
                "give the Agent.id of the publisher");
  std::memcpy(id.data(), bytes.bytes().data(), id.size());
  return id;
}

// Refuses a dict of details of parts that `into` does not have.
void checkParts(const py::dict& details, const py::dict& into, const char* what) {
  for (const auto& [part, detail] : details)
    if (!into.contains(part))
      raiseMisuse("fetch",
                  fmt::format("{} of part {}, which is not taken", what,
                              py::repr(part).cast<std::string>()),
                  "give memory for the part in `into`");
}

// The owner of a parcel, which the meeting place names.
Peer ownerAtPlace(AgentState& state, const std::string& name, const py::object& timeout,
                  FetchOptions& options) {
  auto found = valueOf(waitUnlocked(
      deadlineOf("fetch", timeout),
      [&](Deadline until) { return state.agent.findParcel(name, until); }, Slices::kGrowing));
  if (!options.owner) options.owner = found.agent;
  return std::move(found.peer);
}

std::unique_ptr<FetchState> fetch(AgentState& state, const KnownPeer* peer, const std::string& name,
                                  const py::dict& into, const py::dict& slices,
                                  const py::dict& have, std::uint64_t version, bool exact,
                                  std::uint64_t layout, const py::object& group,
                                  const py::object& timeout, const std::string& priority,
                                  std::string require, const py::object& owner) {
  state.need("fetch");
  FetchOptions options{.version = version,
                       .exact = exact,
                       .layout = layout,
                       .group = groupOf(group),
                       .priority = priorityOf(priority),
                       .require = std::move(require)};
  if (!timeout.is_none()) options.deadline = deadlineOf("fetch", timeout);
  options.owner = ownerOf(owner);
  Pins pins;
  for (const auto& [part, blocks] : into) {
    PartInto& one = options.into.emplace_back(
        PartInto{.part = partOf(part.cast<Part>()), .into = selectionOf(blocks, state, pins)});
    if (slices.contains(part))
      one.slice = slices[part].cast<std::shared_ptr<const BlockList>>()->blocks();
    if (have.contains(part)) one.have = digestsOf("fetch", have[part]);
  }
  checkParts(slices, into, "a slice");
  checkParts(have, into, "digests");
  const Peer of = peer != nullptr ? peer->peer : ownerAtPlace(state, name, timeout, options);
  auto begun = unlocked([&] { return state.agent.fetch(of, name, std::move(options)); });
  return std::make_unique<FetchState>(state.shared_from_this(), valueOf(std::move(begun)),
                                      std::move(pins));
}

void waitForEnd(FetchState& fetch, const py::object& timeout) {
  check(waitUnlocked(waitLimitOf("wait", timeout),
                     [&](Deadline until) { return fetch.end->wait(until); }));
}

void waitForPart(FetchState& fetch, const Part& part, const py::object& timeout) {
  check(waitUnlocked(waitLimitOf("wait_part", timeout),
                     [&](Deadline until) { return fetch.end->waitPart(partOf(part), until); }));
}

const char* stateOf(const FetchState& fetch) {
  const auto end = unlocked([&] { return fetch.end->end(); });
  return end ? parcelOutcomeName(end->outcome) : "running";
}

// Cancels the fetch and waits for its end, because it may touch memory until then.
void cancelAndWait(FetchState& fetch, const py::args&) {
  unlocked([&] {
    fetch.end->cancel("the with block has ended");
    static_cast<void>(fetch.end->wait(Deadline::never()));
  });
}

constexpr auto kEndClass = R"(How a parcel, or the fetch of a group, ended.

outcome   "whole", "failed", "superseded", "expired", "cancelled" or "lost"
version   of the parcel
part      (rank, component) that failed, or None
consumer  the rank of the group that failed or was lost, or None
ranks     if it is whole: the ranks of the group that have all parts
error     the exception with the reason; None if it is whole)";

constexpr auto kParcelClass =
    R"(A named and versioned thing of parts, which groups of ranks fetch. It ends once, for everybody.

    parcel = agent.publish("weights", version=7, parts=[(0, 0), (0, 1)], takers=2)
    parcel.ready((0, 0), blocks[:4])              # its bytes stay unchanged from here on
    parcel.ready((0, 1), blocks[4:])
    end = parcel.wait(timeout=10)                 # both groups have ended: the blocks are free

A part is a pair: the rank that publishes it, and a number, the component. The end of a `with` block
withdraws the parcel, and so does garbage collection of its last PublishedParcel.)";

constexpr auto kFetchClass = R"(Fetches parts of a parcel into blocks here.

    fetch = agent.fetch(peer, "weights", {(0, 0): ours[:4], (0, 1): ours[4:]}, version=7)
    fetch.wait(timeout=10)                        # or: await fetch

wait() returns only if the parcel is whole, for all ranks of the group. Otherwise it raises the
reason, and nothing writes to the blocks any more. The end of a `with` block and garbage collection
cancel the fetch.)";

constexpr Doc kPublish{R"(
Publishes a parcel, and returns the PublishedParcel. `parts` names all its parts, and `ready` has the
blocks of those that are ready; without `parts`, `ready` has all.

takers   how many groups may take it; 0: any number, until withdraw()
life     seconds after which it expires, unless all takers have asked
layout   a signature that a fetch may compare
digests  gives each block a digest, which the fetch checks
owner    the Peer that decides about a parcel of several publishing ranks, which all name it; without
         it, this agent
at_place publishes the parcel's name at the meeting place, so that fetch() needs no peer)"};

constexpr Doc kFetch{R"(
Fetches a parcel that the peer has published, or will publish before `timeout`, and returns the
ParcelFetch. `into` has blocks here for each part to take, and `slices` the offsets in the part that
are taken. With None for the peer, waits for the agent that has published the parcel with at_place.

have     for parts, the digests of their blocks as they are here: blocks that have the same digest at
         a publisher with digests=True are not read
version  this one or a newer one; with exact=True exactly this one
group    (name, size, rank) of ranks that fetch together and get one end; a fourth number says how
         many of them suffice if others are lost
timeout  seconds; without it, the setting `deadline`
owner    the Agent.id of the publisher; a later life of it is refused)"};

constexpr Doc kReadyPart{R"(
The part has its bytes, which stay unchanged until the parcel has ended. Once for each part.)"};

constexpr Doc kWaitParcel{R"(
Waits until all expected groups have ended, and returns the ParcelEnd. The blocks may then be used
again.)"};

constexpr Doc kWithdraw{R"(
Ends the parcel for everybody. On return the blocks may be used again. PeerLostError: a consumer was
stopped inside a copy; they may be used again once wait() returns.)"};

constexpr Doc kWaitFetch{R"(
Waits until the parcel is whole, for all ranks of the group. Raises the reason if it is not.)"};

constexpr Doc kWaitPart{R"(
Waits until one part has arrived, before it is known whether the parcel will be whole. Only for a
caller that can take back what it makes of the part.)"};

constexpr Doc kCancelFetch{R"(
Asks the fetch to end, for all ranks of the group. Does not block: wait for the end.)"};

void bindParcelEnd(py::module_& module) {
  py::class_<ParcelEnd>(module, "ParcelEnd", kEndClass)
      .def_property_readonly(
          "outcome", [](const ParcelEnd& end) { return parcelOutcomeName(end.outcome); },
          "How it ended.")
      .def_readonly("version", &ParcelEnd::version, "The version of the parcel.")
      .def_property_readonly(
          "part",
          [](const ParcelEnd& end) -> py::object {
            if (!end.part) return py::none();
            return tupleOf(*end.part);
          },
          "(rank, component) of the part that failed, or None.")
      .def_readonly("consumer", &ParcelEnd::consumer,
                    "The rank of the group that failed or was lost, or None.")
      .def_property_readonly(
          "ranks", [](const ParcelEnd& end) { return py::tuple(py::cast(end.ranks)); },
          "The ranks of the group that have all parts, if it is whole.")
      .def_property_readonly(
          "error",
          [](const ParcelEnd& end) -> py::object {
            return end.why ? exceptionOf(*end.why) : py::none();
          },
          "The exception with the reason; None if it is whole.")
      .def("__repr__", [](const ParcelEnd& end) {
        return fmt::format("<viaduct.ParcelEnd {}{}>", parcelOutcomeName(end.outcome),
                           end.why ? ": " + end.why->text() : "");
      });
}

}  // namespace

void bindParcels(py::module_& module) {
  bindParcelEnd(module);
  withAgent(py::class_<ParcelState>(module, "PublishedParcel", kParcelClass))
      .def("ready", makeReady, py::arg("part"), py::arg("blocks"), kReadyPart)
      .def_property_readonly(
          "missing",
          [](const ParcelState& parcel) {
            return tupleOf(unlocked([&] { return parcel.end->missing(); }));
          },
          "The parts that are not ready.")
      .def_property_readonly(
          "taken",
          [](const ParcelState& parcel) { return unlocked([&] { return parcel.end->taken(); }); },
          "How many groups have ended.")
      .def("wait", waitForTakers, py::arg("timeout") = py::none(), kWaitParcel)
      .def("withdraw", withdraw, kWithdraw)
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](ParcelState& parcel, const py::args&) { withdraw(parcel); });
  py::class_<FetchState>(module, "ParcelFetch", kFetchClass)
      .def_property_readonly(
          "agent", [](const FetchState& fetch) { return fetch.agent; }, "The agent that fetches.")
      .def_property_readonly("state", stateOf, "\"running\", or the outcome of `end`.")
      .def_property_readonly(
          "end", [](const FetchState& fetch) { return unlocked([&] { return fetch.end->end(); }); },
          "The ParcelEnd; None while it runs.")
      .def_property_readonly(
          "missing",
          [](const FetchState& fetch) {
            return tupleOf(unlocked([&] { return fetch.end->missing(); }));
          },
          "The parts that have not arrived; before the offer of the publisher: none.")
      .def("wait", waitForEnd, py::arg("timeout") = py::none(), kWaitFetch)
      .def("wait_part", waitForPart, py::arg("part"), py::arg("timeout") = py::none(), kWaitPart)
      .def(
          "cancel",
          [](FetchState& fetch, const std::string& why) {
            unlocked([&] { fetch.end->cancel(why); });
          },
          py::arg("why") = "cancelled by the program", kCancelFetch)
      .def(
          "__await__",
          [](const py::object& self) {
            return py::module_::import("viaduct._asyncio").attr("end_of")(self).attr("__await__")();
          })
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", cancelAndWait);
}

void bindParcelsOf(py::class_<AgentState, std::shared_ptr<AgentState>>& agent) {
  agent
      .def("publish", publish, py::arg("name"), py::arg("ready") = py::dict(), py::kw_only(),
           py::arg("version") = 0, py::arg("layout") = 0, py::arg("parts") = py::tuple(),
           py::arg("takers") = 0, py::arg("life") = py::none(), py::arg("digests") = false,
           py::arg("owner") = py::none(), py::arg("at_place") = false, kPublish)
      .def("fetch", fetch, py::arg("peer"), py::arg("name"), py::arg("into"), py::kw_only(),
           py::arg("slices") = py::dict(), py::arg("have") = py::dict(), py::arg("version") = 0,
           py::arg("exact") = false, py::arg("layout") = 0, py::arg("group") = py::none(),
           py::arg("timeout") = py::none(), py::arg("priority") = "normal", py::arg("require") = "",
           py::arg("owner") = py::none(), kFetch);
}

}  // namespace viaduct::python
