#include <fmt/format.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "memory_of.h"
#include "planned_transfer.h"
#include "rows.h"
#include "settings_of.h"

namespace viaduct::python {
namespace {

std::shared_ptr<AgentState> open(const py::kwargs& settings) {
  const Settings chosen = settingsOf(settings);
  auto opened = unlocked([&] { return Agent::open(chosen); });
  return std::make_shared<AgentState>(valueOf(std::move(opened)));
}

std::shared_ptr<PinState> allocate(AgentState& state, const py::object& bytes,
                                   const std::string& label, bool huge_pages) {
  state.need("allocate");
  const std::uint64_t size = parseUnsigned(bytes, "bytes");
  auto pin = unlocked(
      [&] { return state.agent.allocate(size, {.label = label, .huge_pages = huge_pages}); });
  return state.addPin(valueOf(std::move(pin)), py::object());
}

bool isAddressAndBytes(const py::object& memory) {
  return PyTuple_Check(memory.ptr()) != 0 && PyTuple_GET_SIZE(memory.ptr()) == 2;
}

std::shared_ptr<PinState> pin(AgentState& state, const py::object& object, const std::string& label,
                              bool read_only) {
  state.need("pin");
  ObjectMemory memory;
  if (isAddressAndBytes(object)) {
    const py::tuple pair = object;
    memory = {.address = parseUnsigned(pair[0], "address"),
              .shape = {static_cast<std::int64_t>(parseUnsigned(pair[1], "bytes"))},
              .strides = {1}};
  } else {
    memory = denseMemoryOf("pin", object);
  }
  const bool only_reading = read_only || memory.read_only;
  const Segment segment{
      .address = memory.address,
      .bytes = memory.bytes(),
      .access = only_reading ? MemoryAccess::kReadOnly : MemoryAccess::kReadWrite};
  auto pinned = unlocked([&] { return state.agent.pin(segment, label); });
  return state.addPin(valueOf(std::move(pinned)), std::move(memory.keeper));
}

KnownPeer known(AgentState& state, Result<Peer> peer) {
  return {.agent = state.shared_from_this(), .peer = valueOf(std::move(peer))};
}

KnownPeer connect(AgentState& state, const py::object& card_or_address) {
  state.need("connect");
  const NoteBytes given("connect", card_or_address);
  auto peer = [&]() -> Result<Peer> {
    const bool address = PyUnicode_Check(card_or_address.ptr()) != 0;
    const Unlocked unlocked;
    if (!address) return state.agent.importCard(given.bytes());
    return state.agent.connect(std::string_view(reinterpret_cast<const char*>(given.bytes().data()),
                                                given.bytes().size()));
  }();
  return known(state, std::move(peer));
}

KnownPeer find(AgentState& state, const std::string& name, const py::object& timeout) {
  state.need("find");
  return known(
      state, waitUnlocked(
                 deadlineOf("find", timeout),
                 [&](Deadline until) { return state.agent.find(name, until); }, Slices::kGrowing));
}

OpKind kindOf(const py::object& op) {
  if (PyUnicode_Check(op.ptr()) != 0) {
    if (PyUnicode_CompareWithASCIIString(op.ptr(), "write") == 0) return OpKind::kWrite;
    if (PyUnicode_CompareWithASCIIString(op.ptr(), "read") == 0) return OpKind::kRead;
  }
  raiseMisuse("plan", fmt::format("{} is no operation", py::repr(op).cast<std::string>()),
              "use \"write\" (from here to the peer) or \"read\" (from the peer to here)");
}

std::unique_ptr<PlannedTransfer> plan(AgentState& state, OpKind kind, const KnownPeer& peer,
                                      const py::object& local, const py::object& remote,
                                      std::string require) {
  state.need("plan");
  Side here = localSideOf(local, state), there = remoteSideOf(remote);
  Selection from{.blocks = here.list->blocks(), .indices = std::move(here.indices)};
  Selection to{.blocks = there.list->blocks(), .indices = std::move(there.indices)};
  auto planned = unlocked(
      [&] { return state.agent.plan(kind, peer.peer, from, to, {.require = std::move(require)}); });
  return std::make_unique<PlannedTransfer>(state.shared_from_this(), kind, std::move(here),
                                           std::move(there), valueOf(std::move(planned)));
}

// plan(), post() and wait() in one.
template <OpKind kind>
std::unique_ptr<PlannedTransfer> move(AgentState& state, const KnownPeer& peer,
                                      const py::object& local, const py::object& remote,
                                      const py::object& note, const py::object& timeout,
                                      std::string require) {
  auto transfer = plan(state, kind, peer, local, remote, std::move(require));
  transfer->post(note, timeout);
  transfer->wait(py::none());
  return transfer;
}

std::optional<Note> takeNote(AgentState& state) {
  state.need("take_note");
  return unlocked([&] { return state.agent.takeNote(); });
}

Note waitNote(AgentState& state, const py::object& timeout) {
  if (auto note = takeNote(state)) return *std::move(note);
  return valueOf(waitUnlocked(deadlineOf("wait_note", timeout),
                              [&](Deadline until) { return state.agent.waitNote(until); }));
}

bool poll(AgentState& state) {
  state.need("poll");
  const bool moved = unlocked([&] { return state.agent.poll(); });
  // This call has taken the event that asyncio waits for.
  if (!state.readers.is_none()) py::module_::import("viaduct._asyncio").attr("wake")(state.readers);
  return moved;
}

py::dict statistics(AgentState& state) {
  state.need("statistics");
  const Statistics now = unlocked([&] { return state.agent.statistics(); });
  using py::operator""_a;
  py::list rails;
  for (const RailStatistics& rail : now.rails)
    rails.append(py::dict("backend"_a = rail.backend, "rail"_a = rail.rail, "bytes"_a = rail.bytes,
                          "ops"_a = rail.ops, "times_set_aside"_a = rail.times_set_aside));
  return py::dict("agent"_a = now.agent, "endpoint"_a = now.endpoint, "started"_a = now.started,
                  "done"_a = now.done, "failed"_a = now.failed, "cancelled"_a = now.cancelled,
                  "notes_sent"_a = now.notes_sent, "notes_received"_a = now.notes_received,
                  "sessions_lost"_a = now.sessions_lost, "pins"_a = now.pins,
                  "pinned_bytes"_a = now.pinned_bytes, "rails"_a = rails);
}

py::list peers(AgentState& state) {
  state.need("peers");
  py::list list;
  for (Peer& peer : unlocked([&] { return state.agent.peers(); }))
    list.append(KnownPeer{.agent = state.shared_from_this(), .peer = std::move(peer)});
  return list;
}

py::dict backends(AgentState& state) {
  state.need("backends");
  py::dict all;
  for (const BackendInfo& backend : unlocked([&] { return state.agent.backends(); }))
    all[py::str(backend.name)] = py::make_tuple(backend.open, backend.text);
  return all;
}

std::string describe(const AgentState& state) {
  if (state.isForked()) return "<viaduct.Agent of the parent process>";
  return fmt::format("<viaduct.Agent {:?}{}>", state.agent.name(),
                     state.isClosed() ? ", closed" : "");
}

constexpr auto kAgent = R"(One process's end: it pins memory, knows peers, and moves blocks.

    with viaduct.Agent(name="client") as agent:
        data = numpy.ones(1 << 20, dtype="uint8")
        with agent.pin(data):                         # or: memory = agent.allocate(1 << 20)
            peer = agent.connect(card)                # bytes of the other agent's `card`
            peer.ready(timeout=10)
            inbox = peer.pin("inbox", timeout=10)     # what it called its memory
            agent.write(peer, data, inbox, note=b"it is there")
            note = agent.wait_note(timeout=10)
            print(note.sender, note.data)

Agent(**settings), or Agent.open(**settings). Settings are keywords named as the variables of
docs/settings.md without VIADUCT_, in lower case: name="a", listen="0.0.0.0:7000", deadline=5. Others
come from the VIADUCT_* variables, unless environment=False.

Every call may come from any thread. Calls that block or copy release the GIL. An agent cannot be used
in a child of fork(). It closes when it is garbage collected, and when the interpreter exits.)";

constexpr auto kAllocate = R"(allocate($self, /, bytes, label='', *, huge_pages=False)
--

Memory that peers on this host can map, zeroed and pinned. The fastest memory to move.

`label` is the name under which peers find it. huge_pages: 2 MiB pages, ExhaustedError if the system
has none to give.)";

constexpr auto kPinDoc = R"(pin($self, /, memory, label='', *, read_only=False)
--

Pins memory of yours: a buffer (bytearray, mmap), a numpy array, a tensor in host memory, or
(address, bytes).

It has to be contiguous. The Pin keeps the object alive; of (address, bytes) you keep the memory
until release() has returned. Memory that may not be written, such as bytes, is pinned read-only.)";

constexpr auto kConnect = R"(connect($self, /, card_or_address)
--

Starts to connect and returns the Peer: by the bytes of the other agent's `card`, or by the text
"host:port" with a `secret` in the settings of both. Peer.ready() waits.)";

constexpr auto kFind = R"(find($self, /, name, timeout=None)
--

The agent of that name at the meeting place of the setting `meet`. Waits until it is there.)";

constexpr auto kPlan = R"(plan($self, /, op, peer, local, remote, *, require='')
--

Plans a copy, "write" from `local` to `remote` or "read" the other way, and returns the Transfer.

Each side is Blocks, blocks[indices], (blocks, indices), a Pin or RemotePin as a whole, or
(address, bytes); `local` may also be an array or tensor inside of pinned memory. Both sides have the
same number of bytes. `require` is what the path has to be: "rdma", "same-host", "not-tcp",
"backend:NAME", joined by commas.)";

constexpr auto kWrite =
    R"(write($self, /, peer, local, remote, *, note=None, timeout=None, require='')
--

Copies from here to the peer and returns when it is done, with the Transfer. Takes what plan() and
post() take. Ctrl-C, or another error, cancels the copy and waits for its end.)";

constexpr auto kRead =
    R"(read($self, /, peer, local, remote, *, note=None, timeout=None, require='')
--

Copies from the peer to here and returns when it is done, with the Transfer. Takes what plan() and
post() take. Ctrl-C, or another error, cancels the copy and waits for its end.)";

void bindMemory(py::class_<AgentState, std::shared_ptr<AgentState>>& agent) {
  agent
      .def("allocate", allocate, py::arg("bytes"), py::arg("label") = "", py::kw_only(),
           py::arg("huge_pages") = false, kAllocate)
      .def("pin", pin, py::arg("memory"), py::arg("label") = "", py::kw_only(),
           py::arg("read_only") = false, kPinDoc);
}

void bindPeers(py::class_<AgentState, std::shared_ptr<AgentState>>& agent) {
  agent
      .def_property_readonly(
          "card",
          [](AgentState& state) {
            state.need("card");
            const auto card = unlocked([&] { return state.agent.exportCard(); });
            return py::bytes(reinterpret_cast<const char*>(card.data()), card.size());
          },
          "The bytes that let another agent connect to this one. Treat them like a password.")
      .def_property_readonly(
          "addresses",
          [](AgentState& state) {
            state.need("addresses");
            return unlocked([&] { return state.agent.card(); }).addresses;
          },
          "Where it listens: [\"127.0.0.1:40123\"].")
      .def("connect", connect, py::arg("card_or_address"), kConnect)
      .def("find", find, py::arg("name"), py::arg("timeout") = py::none(), kFind)
      .def(
          "self",
          [](AgentState& state) {
            state.need("self");
            return known(state, unlocked([&] { return state.agent.self(); }));
          },
          "self($self, /)\n--\n\nThis agent as a peer of itself.")
      .def(
          "peer",
          [](AgentState& state, const std::string& name) {
            state.need("peer");
            return known(state, unlocked([&] { return state.agent.peer(name); }));
          },
          py::arg("name"),
          "peer($self, /, name)\n--\n\nA peer that is known already, such as the sender of a "
          "note.")
      .def_property_readonly("peers", peers, "All peers that are known.");
}

void bindTransfers(py::class_<AgentState, std::shared_ptr<AgentState>>& agent) {
  agent
      .def(
          "plan",
          [](AgentState& state, const py::object& op, const KnownPeer& peer,
             const py::object& local, const py::object& remote, std::string require) {
            return plan(state, kindOf(op), peer, local, remote, std::move(require));
          },
          py::arg("op"), py::arg("peer"), py::arg("local"), py::arg("remote"), py::kw_only(),
          py::arg("require") = "", kPlan)
      .def("write", move<OpKind::kWrite>, py::arg("peer"), py::arg("local"), py::arg("remote"),
           py::kw_only(), py::arg("note") = py::none(), py::arg("timeout") = py::none(),
           py::arg("require") = "", kWrite)
      .def("read", move<OpKind::kRead>, py::arg("peer"), py::arg("local"), py::arg("remote"),
           py::kw_only(), py::arg("note") = py::none(), py::arg("timeout") = py::none(),
           py::arg("require") = "", kRead);
}

void bindEvents(py::class_<AgentState, std::shared_ptr<AgentState>>& agent) {
  agent
      .def("take_note", takeNote,
           "take_note($self, /)\n--\n\nThe next note that has arrived, from any peer, or None. "
           "Does not wait.")
      .def("wait_note", waitNote, py::arg("timeout") = py::none(),
           "wait_note($self, /, timeout=None)\n--\n\nThe next note, from any peer. Waits for it; "
           "TimeoutError after `timeout` seconds.")
      .def(
          "notes",
          [](const py::object& self) {
            return py::module_::import("viaduct._asyncio").attr("Notes")(self);
          },
          "notes($self, /)\n--\n\nAll notes as they come: `for note in agent.notes()` waits in "
          "its thread,\n`async for note in agent.notes()` in the event loop.")
      .def("poll", poll,
           "poll($self, /)\n--\n\nMoves everything along once, without blocking. True if "
           "something happened.")
      .def(
          "fileno",
          [](AgentState& state) {
            state.need("fileno");
            return valueOf(unlocked([&] { return state.agent.eventFd(); }));
          },
          "fileno($self, /)\n--\n\nA descriptor for select() and selectors: readable while poll() "
          "has something to do.\nWatch it, and neither read nor close it.")
      .def_property(
          "_readers", [](const AgentState& state) { return state.readers; },
          [](AgentState& state, py::object readers) { state.readers = std::move(readers); });
}

}  // namespace

void bindAgent(py::module_& module) {
  py::class_<AgentState, std::shared_ptr<AgentState>> agent(module, "Agent", kAgent);
  agent.def(py::init(&open))
      .def_static("open", open, "open(**settings)\n--\n\nThe same as Agent(**settings).")
      .def("close", &AgentState::close,
           "close($self, /)\n--\n\nSays goodbye to all peers and ends all transfers. Waits of "
           "other threads end with an error.\nMay be called twice.")
      .def_property_readonly("closed", &AgentState::isClosed, "Whether close() was called.")
      .def_property_readonly(
          "name", [](const AgentState& state) { return state.agent.name(); },
          "The name that peers see.")
      .def_property_readonly("backends", backends,
                             "In order of preference: {\"local\": (True, what is in force), "
                             "\"ofi\": (False, why not)}.")
      .def("statistics", statistics,
           "statistics($self, /)\n--\n\nWhat the agent has done since it was opened, as a dict.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](AgentState& state, const py::args&) { state.close(); })
      .def("__repr__", describe);
  bindMemory(agent);
  bindPeers(agent);
  bindTransfers(agent);
  bindEvents(agent);
  py::module_::import("atexit").attr("register")(py::cpp_function(&AgentState::closeAll));
}

}  // namespace viaduct::python
