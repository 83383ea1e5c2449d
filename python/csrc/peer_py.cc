#include <fmt/format.h>
#include <pybind11/stl.h>

#include <functional>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"

namespace viaduct::python {
namespace {

constexpr auto kPeer = R"(Another agent to which the local agent connects.

    peer = agent.connect(card)              # bytes from the other agent's `card`
    peer.ready(timeout=10)                  # waits until the peer is connected
    inbox = peer.pin("inbox", timeout=10)   # memory that it has pinned under that label
    agent.write(peer, data, inbox)
    peer.note(b"it is there")

Agent.connect(), find(), self() and peer() return a Peer. The state of a dead peer becomes "lost",
and the agent reconnects in the background. The same object becomes "ready" when the peer is
back.)";

// Attributes and waits use the agent, so Agent.need() refuses them in a child of fork().
Peer& live(KnownPeer& known, const char* operation) {
  known.agent->need(operation);
  return known.peer;
}

// Calls a member function of Peer without the GIL, because the function takes the agent's lock.
template <class Member>
auto ask(KnownPeer& known, const char* operation, const Member& member) {
  const Peer& peer = live(known, operation);
  return unlocked([&] { return std::invoke(member, peer); });
}

// Makes a Python method that calls `member` of the Peer.
template <auto member>
auto asking(const char* operation) {
  return [operation](KnownPeer& known) { return ask(known, operation, member); };
}

void waitReady(KnownPeer& known, const py::object& timeout) {
  Peer& peer = live(known, "ready");
  waitUpTo("ready", timeout, [&](Deadline until) { return peer.ready(until); });
}

PinInfo waitPin(KnownPeer& known, const std::string& label, const py::object& timeout) {
  Peer& peer = live(known, "pin");
  return waitUpTo("pin", timeout, [&](Deadline until) { return peer.waitPin(label, until); });
}

void waitOver(KnownPeer& known, std::optional<std::uint64_t> epoch, const py::object& timeout) {
  Peer& peer = live(known, "over");
  const std::uint64_t which = epoch ? *epoch : ask(known, "over", &Peer::epoch);
  waitUpTo("over", timeout, [&](Deadline until) { return peer.over(which, until); });
}

void sendNote(KnownPeer& known, const py::object& data) {
  Peer& peer = live(known, "note");
  if (data.is_none()) raiseWrongType("note", data, "give bytes, which may be empty");
  const NoteBytes note("note", data);
  const Status sent = unlocked([&] { return peer.note(note.bytes()); });
  check(sent);
}

std::string describe(const KnownPeer& known) {
  if (known.agent->isForked()) return "<viaduct.Peer of the parent process>";
  const Unlocked released;
  return fmt::format("<viaduct.Peer {:?} {}>", known.peer.name(),
                     peerStateName(known.peer.state()));
}

}  // namespace

void bindPeer(py::module_& module) {
  py::class_<KnownPeer>(module, "Peer", kPeer)
      .def_property_readonly(
          "name", asking<&Peer::name>("name"),
          "The peer's name. Empty for a peer that was connected by address and has not answered "
          "yet.")
      .def_property_readonly(
          "state",
          [](KnownPeer& known) { return peerStateName(ask(known, "state", &Peer::state)); },
          "The state of the peer: \"connecting\", \"ready\", \"lost\" or \"gone\".")
      .def_property_readonly("epoch", asking<&Peer::epoch>("epoch"),
                             "The number of the present session with the peer, counted from 1.")
      .def_property_readonly(
          "settled",
          [](const KnownPeer& known) { return unlocked([&] { return known.peer.settled(); }); },
          "False while a stopped peer may still write to memory that this process has withdrawn.")
      .def_property_readonly(
          "agent", [](const KnownPeer& known) { return known.agent; },
          "The local agent of this Peer.")
      .def_property_readonly("pins", asking<&Peer::pins>("pins"),
                             "The memory that the peer has pinned now, as a list of RemotePin.")
      .def_property_readonly(
          "ways",
          [](KnownPeer& known) {
            py::dict ways;
            for (const PeerWay& way : ask(known, "ways", &Peer::ways))
              ways[py::str(way.backend)] = py::make_tuple(way.usable, way.text);
            return ways;
          },
          "How each backend reaches the peer, as {name: (usable, text)}: {\"local\": (True, "
          "\"mapped, cma\")}.\nThe text of an unusable backend gives the reason.")
      .def("ready", waitReady, py::arg("timeout") = py::none(), Doc{R"(
Waits until the peer is ready. PeerLostError gives the reason why the peer cannot be reached. In
asyncio, use await viaduct.awaitable(peer.ready, 10).)"})
      .def("over", waitOver, py::arg("epoch") = py::none(), py::arg("timeout") = py::none(), Doc{R"(
Waits until the session with the number `epoch` is over: the peer is lost, has left, or has begun
another session. The default is the present session.)"})
      .def("pin", waitPin, py::arg("label"), py::arg("timeout") = py::none(),
           Doc{"Returns the memory that the peer has pinned under that label. Waits until the peer "
               "has pinned it."})
      .def("note", sendNote, py::arg("data"), Doc{R"(
Sends a note of bytes, text or a buffer, at most 1 MiB. Each note arrives once and in the order
sent, unless the peer is lost. BusyError: the peer does not read its notes.)"})
      .def("forget", asking<&Peer::forget>("forget"),
           Doc{"Ends the session, and stops trying to reach the peer."})
      .def("__repr__", py::overload_cast<const KnownPeer&>(&describe));
}

}  // namespace viaduct::python
