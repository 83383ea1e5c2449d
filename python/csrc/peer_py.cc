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

constexpr auto kPeer = R"(Another agent, as this one sees it.

    peer = agent.connect(card)              # bytes from the other agent's `card`
    peer.ready(timeout=10)                  # waits until transfers and notes can go
    inbox = peer.pin("inbox", timeout=10)   # memory that it has pinned under that label
    agent.write(peer, data, inbox)
    peer.note(b"it is there")

Made by Agent.connect(), find(), self() and peer(). A peer that dies becomes "lost" and is tried again
in the background; the same object is "ready" again when it has come back.)";

// Attributes and waits look at the agent, which the child of a fork() must not.
Peer& live(KnownPeer& known, const char* operation) {
  known.agent->need(operation);
  return known.peer;
}

// What a member of Peer says, which takes the agent's lock.
template <class Member>
auto ask(KnownPeer& known, const char* operation, const Member& member) {
  const Peer& peer = live(known, operation);
  return unlocked([&] { return std::invoke(member, peer); });
}

void waitReady(KnownPeer& known, const py::object& timeout) {
  Peer& peer = live(known, "ready");
  check(waitUnlocked(deadlineOf("ready", timeout),
                     [&](Deadline until) { return peer.ready(until); }));
}

PinInfo waitPin(KnownPeer& known, const std::string& label, const py::object& timeout) {
  Peer& peer = live(known, "pin");
  return valueOf(waitUnlocked(deadlineOf("pin", timeout),
                              [&](Deadline until) { return peer.waitPin(label, until); }));
}

void waitOver(KnownPeer& known, std::optional<std::uint64_t> epoch, const py::object& timeout) {
  Peer& peer = live(known, "over");
  const std::uint64_t which = epoch ? *epoch : ask(known, "over", &Peer::epoch);
  check(waitUnlocked(deadlineOf("over", timeout),
                     [&](Deadline until) { return peer.over(which, until); }));
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
          "name", [](KnownPeer& known) { return ask(known, "name", &Peer::name); },
          "Its name. Empty until a peer that was named by address has answered.")
      .def_property_readonly(
          "state",
          [](KnownPeer& known) { return peerStateName(ask(known, "state", &Peer::state)); },
          "\"connecting\", \"ready\", \"lost\" or \"gone\".")
      .def_property_readonly(
          "epoch", [](KnownPeer& known) { return ask(known, "epoch", &Peer::epoch); },
          "Counts the sessions with the peer, from 1.")
      .def_property_readonly(
          "settled",
          [](const KnownPeer& known) { return unlocked([&] { return known.peer.settled(); }); },
          "False while a stopped copy of the peer may still change memory that was withdrawn.")
      .def_property_readonly(
          "agent", [](const KnownPeer& known) { return known.agent; }, "The agent that sees it.")
      .def_property_readonly(
          "pins", [](KnownPeer& known) { return ask(known, "pins", &Peer::pins); },
          "What it has pinned now: a list of RemotePin.")
      .def_property_readonly(
          "ways",
          [](KnownPeer& known) {
            py::dict ways;
            for (const PeerWay& way : ask(known, "ways", &Peer::ways))
              ways[py::str(way.backend)] = py::make_tuple(way.usable, way.text);
            return ways;
          },
          "How each backend reaches the peer: {\"local\": (True, \"mapped, cma\")}, or why not.")
      .def("ready", waitReady, py::arg("timeout") = py::none(), R"(ready($self, /, timeout=None)
--

Waits until the peer is ready. PeerLostError says why it is not. In asyncio:
await asyncio.to_thread(peer.ready, 10).)")
      .def("over", waitOver, py::arg("epoch") = py::none(), py::arg("timeout") = py::none(),
           R"(over($self, /, epoch=None, timeout=None)
--

Waits until the session `epoch` is over: the peer is lost, has left, or has begun another. Without
`epoch`, the present session.)")
      .def("pin", waitPin, py::arg("label"), py::arg("timeout") = py::none(),
           R"(pin($self, /, label, timeout=None)
--

The memory that the peer has pinned under that label. Waits until there is one.)")
      .def("note", sendNote, py::arg("data"), R"(note($self, /, data)
--

Sends bytes, text or a buffer, at most 1 MiB. Notes arrive once and in the order sent, or the peer is
lost. BusyError: the peer does not read its notes.)")
      .def(
          "forget", [](KnownPeer& known) { ask(known, "forget", &Peer::forget); },
          R"(forget($self, /)
--

Ends the session, and stops trying to reach the peer.)")
      .def("__repr__", describe);
}

}  // namespace viaduct::python
