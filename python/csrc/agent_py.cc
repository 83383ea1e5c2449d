#include <fmt/format.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "cards.h"
#include "errors.h"
#include "gil.h"
#include "memory_of.h"
#include "planned_transfer.h"
#include "rows.h"
#include "settings_of.h"

namespace viaduct::python {
namespace {

// The bytes of a path, as the file system has them. Refuses a path with a NUL.
std::string fileSystemPath(const py::object& path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(bytes).cast<std::string>();
}

std::shared_ptr<AgentState> open(const py::kwargs& settings) {
  py::module_::import("viaduct._logging").attr("start")();
  const Settings chosen = settingsOf(settings);
  auto opened = unlocked([&] { return Agent::open(chosen); });
  return std::make_shared<AgentState>(valueOf(std::move(opened)));
}

std::shared_ptr<PinState> allocate(AgentState& state, const py::object& bytes,
                                   const std::string& label, bool huge_pages,
                                   std::optional<std::uint32_t> device) {
  state.need("allocate");
  const std::uint64_t size = parseUnsigned(bytes, "bytes");
  const AllocateOptions options{.label = label, .huge_pages = huge_pages, .device = device};
  return state.addPin(valueOf(unlocked([&] { return state.agent.allocate(size, options); })), {});
}

// No keeper: the caller keeps the memory valid, or the segment is a file or an object.
std::shared_ptr<PinState> pinSegment(AgentState& state, const Segment& segment,
                                     const std::string& label, py::object keeper = {}) {
  auto pin = unlocked([&] { return state.agent.pin(segment, label); });
  return state.addPin(valueOf(std::move(pin)), std::move(keeper));
}

std::shared_ptr<PinState> pin(AgentState& state, const py::object& object, const std::string& label,
                              bool read_only, std::optional<std::uint32_t> device) {
  state.need("pin");
  ObjectMemory memory;
  if (isPair(object)) {
    const py::tuple pair = object;
    memory = {.address = parseUnsigned(pair[0], "address"),
              .shape = {static_cast<std::int64_t>(parseUnsigned(pair[1], "bytes"))},
              .strides = {1},
              .gpu = device};
  } else {
    memory = denseMemoryOf("pin", object);
  }
  const bool only_reading = read_only || memory.read_only;
  const Segment segment{
      .kind = memory.gpu ? MemoryKind::kDevice : MemoryKind::kHost,
      .device = memory.gpu.value_or(0),
      .address = memory.address,
      .bytes = memory.bytes(),
      .access = only_reading ? MemoryAccess::kReadOnly : MemoryAccess::kReadWrite};
  return pinSegment(state, segment, label, std::move(memory.keeper));
}

FileOptions fileOptionsOf(const py::object& offset, const py::object& bytes, bool create,
                          bool read_only) {
  FileOptions options{
      .offset = parseUnsigned(offset, "offset"), .create = create, .read_only = read_only};
  if (bytes.is_none()) return options;
  options.bytes = parseUnsigned(bytes, "bytes");
  if (options.bytes == 0)
    raiseMisuse("pin", "bytes=0 pins nothing", "leave bytes out to pin all bytes to the end");
  return options;
}

std::shared_ptr<PinState> pinFile(AgentState& state, const py::object& file,
                                  const std::string& label, const py::object& offset,
                                  const py::object& bytes, bool create, bool read_only) {
  state.need("pin_file");
  const FileOptions options = fileOptionsOf(offset, bytes, create, read_only);
  const bool is_path = PyUnicode_Check(file.ptr()) != 0 || PyBytes_Check(file.ptr()) != 0 ||
                       py::hasattr(file, "__fspath__");
  if (is_path) return pinSegment(state, Segment::file(fileSystemPath(file), options), label);
  const int fd = PyObject_AsFileDescriptor(file.ptr());
  if (fd < 0) throw py::error_already_set();
  return pinSegment(state, Segment::file(fd, options), label);  // the Pin holds a duplicate
}

std::shared_ptr<PinState> pinObject(AgentState& state, const std::string& url,
                                    const std::string& label, const py::object& offset,
                                    const py::object& bytes, bool create) {
  state.need("pin_object");
  const FileOptions options = fileOptionsOf(offset, bytes, create, false);
  return pinSegment(state, Segment::object(url, options), label);
}

KnownPeer known(AgentState& state, Result<Peer> peer) {
  return {.agent = state.shared_from_this(), .peer = valueOf(std::move(peer))};
}

KnownPeer connect(AgentState& state, const py::object& card_or_address, const py::object& pins,
                  const std::string& access) {
  state.need("connect");
  std::optional<Grant> mine;
  if (!pins.is_none() || access != "both")
    mine =
        grantOf("connect", pins.is_none() ? "*" : pins.cast<std::string>(), access, py::none(), "");
  const bool is_address = PyUnicode_Check(card_or_address.ptr()) != 0;
  if (is_address && mine)
    raiseMisuse("connect", "an address and a grant", "connect with the bytes of a card");
  if (is_address) {
    const auto address = card_or_address.cast<std::string>();
    return known(state, unlocked([&] { return state.agent.connect(address); }));
  }
  const NoteBytes card("connect", card_or_address);
  return known(state,
               unlocked([&] { return state.agent.importCard(card.bytes(), std::move(mine)); }));
}

KnownPeer find(AgentState& state, const std::string& name, const py::object& timeout) {
  state.need("find");
  return known(
      state, waitUnlocked(
                 deadlineOf("find", timeout),
                 [&](Deadline until) { return state.agent.find(name, until); }, Slices::kGrowing));
}

std::unique_ptr<PlannedTransfer> plan(AgentState& state, OpKind kind, const KnownPeer& peer,
                                      const py::object& local, const py::object& remote,
                                      std::string require, const std::string& priority) {
  state.need("plan");
  TransferOptions options{.require = std::move(require), .priority = priorityOf(priority)};
  Side here = localSideOf(local, state), there = remoteSideOf(remote);
  const Selection from = here.take(), to = there.take();
  auto planned =
      unlocked([&] { return state.agent.plan(kind, peer.peer, from, to, std::move(options)); });
  return std::make_unique<PlannedTransfer>(state.shared_from_this(), kind, std::move(here),
                                           std::move(there), valueOf(std::move(planned)));
}

// Runs post() and wait() for the blocking calls Agent.write() and Agent.read().
std::unique_ptr<PlannedTransfer> moved(std::unique_ptr<PlannedTransfer> transfer,
                                       const PostArguments& given) {
  transfer->post(given);
  transfer->wait(py::none());
  return transfer;
}

std::unique_ptr<PlannedTransfer> write(AgentState& state, const KnownPeer& peer,
                                       const py::object& local, const py::object& remote,
                                       py::object note, py::object timeout, std::string require,
                                       py::object mark, const std::string& priority) {
  return moved(plan(state, OpKind::kWrite, peer, local, remote, std::move(require), priority),
               {.note = std::move(note), .timeout = std::move(timeout), .mark = std::move(mark)});
}

std::unique_ptr<PlannedTransfer> read(AgentState& state, const KnownPeer& peer,
                                      const py::object& local, const py::object& remote,
                                      py::object note, py::object timeout, std::string require,
                                      py::object digests, py::object mark,
                                      const std::string& priority) {
  return moved(plan(state, OpKind::kRead, peer, local, remote, std::move(require), priority),
               {std::move(note), std::move(timeout), std::move(digests), std::move(mark)});
}

std::optional<Note> takeNote(AgentState& state) {
  return ask(state, "take_note", &Agent::takeNote);
}

Note waitNote(AgentState& state, const py::object& timeout) {
  if (auto note = takeNote(state)) return *std::move(note);
  return waitUpTo("wait_note", timeout,
                  [&](Deadline until) { return state.agent.waitNote(until); });
}

// Makes a Python method that calls `member` of the Agent.
template <auto member>
auto ofAgent(const char* operation) {
  return [operation](AgentState& state) { return ask(state, operation, member); };
}

py::dict leases(const LeaseStatistics& counts) {
  using py::operator""_a;
  return py::dict("live"_a = counts.live, "returned"_a = counts.returned,
                  "expired"_a = counts.expired, "revoked"_a = counts.revoked,
                  "peer_lost"_a = counts.peer_lost);
}

py::dict statistics(AgentState& state) {
  const Statistics now = ask(state, "statistics", &Agent::statistics);
  using py::operator""_a;
  py::list rails;
  for (const RailStatistics& rail : now.rails) {
    py::dict queues;
    for (std::size_t i = 0; i < kPriorities; ++i)
      queues[priorityName(static_cast<Priority>(i))] =
          py::dict("works"_a = rail.queues[i].works,
                   "oldest_s"_a = std::chrono::duration<double>(rail.queues[i].oldest).count());
    rails.append(py::dict("backend"_a = rail.backend, "rail"_a = rail.rail, "bytes"_a = rail.bytes,
                          "ops"_a = rail.ops, "times_set_aside"_a = rail.times_set_aside,
                          "queues"_a = queues));
  }
  py::list links;
  for (const LinkStatistics& one : now.links)
    links.append(
        py::dict("backend"_a = one.backend, "usable"_a = one.usable, "unusable"_a = one.unusable));
  py::object faults = py::none();
  if (now.faults) {
    faults = py::dict();
    for (std::size_t kind = 0; kind < kFaultKinds; ++kind)
      faults[faultKindName(static_cast<FaultKind>(kind))] = (*now.faults)[kind];
  }
  return py::dict("agent"_a = now.agent, "endpoint"_a = now.endpoint, "started"_a = now.started,
                  "done"_a = now.done, "failed"_a = now.failed, "cancelled"_a = now.cancelled,
                  "notes_sent"_a = now.notes_sent, "notes_received"_a = now.notes_received,
                  "sessions_lost"_a = now.sessions_lost, "pins"_a = now.pins,
                  "pinned_bytes"_a = now.pinned_bytes, "rails"_a = rails, "links"_a = links,
                  "rdma_ports"_a = now.rdma_ports, "lent"_a = leases(now.lent),
                  "borrowed"_a = leases(now.borrowed), "stale"_a = now.stale,
                  "draining"_a = now.draining, "faults"_a = faults);
}

py::list dictsOf(const std::vector<DrainLeft>& left) {
  using py::operator""_a;
  py::list list;
  for (const DrainLeft& one : left)
    list.append(py::dict(
        "peer"_a = one.peer, "answered"_a = one.answered, "transfers"_a = one.transfers,
        "bytes"_a = one.bytes, "their_transfers"_a = one.their_transfers,
        "their_bytes"_a = one.their_bytes, "lent"_a = one.lent, "borrowed"_a = one.borrowed,
        "streams"_a = one.streams, "unsent_bytes"_a = one.unsent_bytes));
  return list;
}

py::list drain(AgentState& state, const py::object& timeout) {
  state.need("drain");
  const Deadline until = deadlineOf("drain", timeout);
  const auto rest = valueOf(unlocked([&] { return state.agent.drain(until); }));
  state.close();
  return dictsOf(rest);
}

py::object drainState(AgentState& state) {
  const DrainState now = ask(state, "drain_state", &Agent::drainState);
  if (!now.draining) return py::none();
  using py::operator""_a;
  return py::dict("remaining"_a = std::chrono::duration<double>(now.remaining).count(),
                  "left"_a = dictsOf(now.left));
}

py::list peers(AgentState& state) {
  py::list list;
  for (Peer& peer : ask(state, "peers", &Agent::peers))
    list.append(KnownPeer{.agent = state.shared_from_this(), .peer = std::move(peer)});
  return list;
}

py::dict backends(AgentState& state) {
  py::dict all;
  for (const BackendInfo& backend : ask(state, "backends", &Agent::backends))
    all[py::str(backend.name)] = py::make_tuple(backend.open, backend.text);
  return all;
}

std::string describe(const AgentState& state) {
  if (state.isForked()) return "<viaduct.Agent of the parent process>";
  return fmt::format("<viaduct.Agent {:?}{}>", state.agent.name(),
                     state.isClosed() ? ", closed" : "");
}

constexpr auto kAgent =
    R"(The endpoint of one process: it pins memory, connects to peers, and copies blocks.

    with viaduct.Agent(name="client") as agent:
        data = numpy.ones(1 << 20, dtype="uint8")
        with agent.pin(data):                         # or: memory = agent.allocate(1 << 20)
            peer = agent.connect(card)                # bytes of the other agent's `card`
            peer.ready(timeout=10)
            inbox = peer.pin("inbox", timeout=10)     # the peer's label of its memory
            agent.write(peer, data, inbox, note=b"it is there")
            note = agent.wait_note(timeout=10)
            print(note.sender, note.data)

Agent(**settings) and Agent.open(**settings) open an agent. Each keyword is a variable of
docs/settings.md in lower case, without VIADUCT_: name="a", listen="0.0.0.0:7000", deadline=5. The
environment variables VIADUCT_* give all other settings, unless environment=False.

Any thread may make any call. Calls that block or copy release the GIL. A child of fork() cannot use
the parent's agent. An agent closes when it is garbage collected, and when the interpreter exits.)";

constexpr Doc kAllocate{R"(
Allocates zeroed, pinned memory that peers on this host can map. No other memory transfers faster.

`label` is the name under which peers find the memory with Peer.pin(). huge_pages=True uses pages of
2 MiB. ExhaustedError: the system has no free huge pages. device=0 allocates memory of that GPU, which
is not zeroed.)"};

constexpr Doc kPinDoc{R"(
Pins memory of the caller: a buffer (bytearray, mmap), a numpy array, a tensor in host memory or in
memory of a GPU, or (address, bytes). device=0 says that the address is one of that GPU.

The memory has to be contiguous. The Pin keeps the object alive. After pin((address, bytes)), keep
the memory valid until release() has returned. Read-only objects, such as bytes, are pinned
read-only.)"};

constexpr Doc kPinFile{R"(
Pins a part of a file: a path, an open descriptor, or an object with fileno(). Transfers of the
agent with itself read and write it.

Without `bytes`, the part goes to the end of the file. create=True makes the file if it is absent,
and extends a shorter file to offset + bytes. A file that cannot be written is pinned read-only.
The Pin keeps a duplicate of a descriptor. No pointer reaches a file: its Pin is no buffer.)"};

constexpr Doc kPinObject{R"(
Pins an object of an S3 store, by its URL "s3://bucket/key". Transfers of the agent with itself
read it.

create=True pins a new object of `bytes` bytes, which one transfer writes as a whole. The variables
AWS_* and VIADUCT_OBJECT_* name the store and the keys (docs/objects.md).)"};

constexpr Doc kConnect{R"(
Starts to connect to another agent, and returns its Peer. Peer.ready() waits for the connection.

Pass the bytes of the other agent's `card`, or its address as the text "host:port". An address needs
the same `secret` in the settings of both agents.

With a card, `pins` and `access` limit what the other agent may reach here in the session that this
call begins, as in export_card(). Without them it may reach all.)"};

constexpr Doc kDrain{R"(
Leaves without losing a transfer, then closes the agent. Gives up the published name and tells all
peers. From then on, new plans, posts, sessions and leases raise DrainingError at both ends. Waits
until running transfers and leases have ended, at most `timeout` seconds, and ends the rest.

Returns the work that was cut off, as a list with one dict for each peer: empty if all has ended by
itself. Raises CancelledError if another thread called undrain(). Blocks also for KeyboardInterrupt.)"};

constexpr Doc kUndrain{R"(
Takes a drain() back that runs in another thread: publishes the name again, and tells all peers.
Raises an error if the name belongs to a successor now; the drain then goes on.)"};

constexpr auto kDrainState = R"(The work that a running drain() waits for, as a dict, or None.

`remaining` has the seconds until the deadline. `left` is a list with one dict for each peer: `peer`,
`answered`, `transfers`, `bytes`, `their_transfers`, `their_bytes`, `lent`, `borrowed`, `streams`,
`unsent_bytes`.)";

constexpr Doc kFind{R"(
Returns the Peer for the agent that has published this name. Waits until some agent publishes it.

The setting `meet` names the meeting place: a directory server where agents publish their
names.)"};

constexpr Doc kPlan{R"(
Plans a copy and returns the Transfer. "write" copies from `local` to `remote`, and "read" copies
from `remote` to `local`.

Each side is Blocks, blocks[indices], (blocks, indices), a whole Pin or RemotePin, or
(address, bytes). `local` may also be an array or tensor inside pinned memory. Both sides have the
same number of bytes. `require` restricts the path of the copy: "rdma", "same-host", "not-tcp",
"encrypted" or "backend:NAME", joined by commas. `priority` is "urgent", "normal" or "background": where transfers
wait for the same rail, those of a higher class go first.)"};

constexpr Doc kWrite{R"(
Copies from this process to the peer, and returns the Transfer when the copy is done. plan() and
post() explain the arguments. Ctrl-C or another exception cancels the copy and waits for its end.)"};

constexpr Doc kRead{R"(
Copies from the peer to this process, and returns the Transfer when the copy is done. plan() and
post() explain the arguments. Ctrl-C or another exception cancels the copy and waits for its end.)"};

void bindMemory(AgentClass& agent) {
  agent
      .def("allocate", allocate, py::arg("bytes"), py::arg("label") = "", py::kw_only(),
           py::arg("huge_pages") = false, py::arg("device") = py::none(), kAllocate)
      .def("pin", pin, py::arg("memory"), py::arg("label") = "", py::kw_only(),
           py::arg("read_only") = false, py::arg("device") = py::none(), kPinDoc)
      .def("pin_file", pinFile, py::arg("file"), py::arg("label") = "", py::kw_only(),
           py::arg("offset") = 0, py::arg("bytes") = py::none(), py::arg("create") = false,
           py::arg("read_only") = false, kPinFile)
      .def("pin_object", pinObject, py::arg("url"), py::arg("label") = "", py::kw_only(),
           py::arg("offset") = 0, py::arg("bytes") = py::none(), py::arg("create") = false,
           kPinObject);
}

void bindPeers(AgentClass& agent) {
  agent
      .def_property_readonly(
          "card",
          [](AgentState& state) {
            return bytesObject(ask(state, "card", [](Agent& asked) { return asked.exportCard(); }));
          },
          "The bytes with which another agent can connect. They grant all pins, for reading and\n"
          "writing, as long as the agent lives: treat them like a password, or use export_card().")
      .def_property_readonly(
          "addresses",
          [](AgentState& state) {
            return ask(state, "addresses", [](Agent& asked) { return asked.card().addresses; });
          },
          "The addresses on which the agent listens, such as [\"127.0.0.1:40123\"].")
      .def("connect", connect, py::arg("card_or_address"), py::kw_only(),
           py::arg("pins") = py::none(), py::arg("access") = "both", kConnect)
      .def("find", find, py::arg("name"), py::arg("timeout") = py::none(), kFind)
      .def(
          "self", [](AgentState& state) { return known(state, ask(state, "self", &Agent::self)); },
          Doc{"Returns this agent as a Peer, for copies within the process."})
      .def(
          "peer",
          [](AgentState& state, const std::string& name) {
            return known(state, ask(state, "peer", &Agent::peer, name));
          },
          py::arg("name"),
          Doc{"Returns a Peer that the agent knows already, such as the sender of a note."})
      .def_property_readonly("peers", peers, "All peers that the agent knows, as a list.");
}

void bindTransfers(AgentClass& agent) {
  agent
      .def(
          "plan",
          [](AgentState& state, const py::object& op, const KnownPeer& peer,
             const py::object& local, const py::object& remote, std::string require,
             const std::string& priority) {
            return plan(state, kindOf(op), peer, local, remote, std::move(require), priority);
          },
          py::arg("op"), py::arg("peer"), py::arg("local"), py::arg("remote"), py::kw_only(),
          py::arg("require") = "", py::arg("priority") = "normal", kPlan)
      .def("write", write, py::arg("peer"), py::arg("local"), py::arg("remote"), py::kw_only(),
           py::arg("note") = py::none(), py::arg("timeout") = py::none(), py::arg("require") = "",
           py::arg("mark") = py::none(), py::arg("priority") = "normal", kWrite)
      .def("read", read, py::arg("peer"), py::arg("local"), py::arg("remote"), py::kw_only(),
           py::arg("note") = py::none(), py::arg("timeout") = py::none(), py::arg("require") = "",
           py::arg("digests") = py::none(), py::arg("mark") = py::none(),
           py::arg("priority") = "normal", kRead);
}

void bindEvents(AgentClass& agent) {
  agent
      .def("take_note", takeNote,
           Doc{"Returns the next note that has arrived from any peer, or None. Does not wait."})
      .def("wait_note", waitNote, py::arg("timeout") = py::none(),
           Doc{"Waits for the next note from any peer, and returns it. TimeoutError: no note "
               "arrived\nwithin `timeout` seconds."})
      .def(
          "notes",
          [](const py::object& self) {
            return py::module_::import("viaduct._asyncio").attr("Notes")(self);
          },
          Doc{"Iterates over the notes as they arrive. `for note in agent.notes()` blocks its "
              "thread.\n`async for note in agent.notes()` waits in the event loop."})
      .def("poll", ofAgent<&Agent::poll>("poll"),
           Doc{"Makes progress on all transfers and connections, without blocking. Returns True "
               "if\nanything advanced."})
      .def(
          "fileno",
          [](AgentState& state) { return valueOf(ask(state, "fileno", &Agent::eventFd)); },
          Doc{"Returns a file descriptor for select() and selectors. The descriptor is "
              "readable\nwhile poll() has work to do. Watch the descriptor, but do not read or "
              "close it."});
}

}  // namespace

AgentClass bindAgent(py::module_& module) {
  AgentClass agent(module, "Agent", kAgent);
  agent.def(py::init(&open), "__init__(self, /, *, environment=True, **settings)\n--\n\n")
      .def_static(
          "open", open,
          "open(*, environment=True, **settings)\n--\n\nOpens an agent, as Agent(**settings) does.")
      .def("close", &AgentState::close,
           Doc{"Tells all peers that the agent leaves, and ends all transfers. Calls that wait in "
               "other\nthreads fail with an error. A second close() does nothing."})
      .def("drain", drain, py::arg("timeout") = py::none(), kDrain)
      .def(
          "undrain", [](AgentState& state) { valueOf(ask(state, "undrain", &Agent::undrain)); },
          kUndrain)
      .def_property_readonly("drain_state", drainState, kDrainState)
      .def_property_readonly("closed", &AgentState::isClosed, "Whether close() was called.")
      .def_property_readonly(
          "name", [](const AgentState& state) { return state.agent.name(); },
          "The name that peers see.")
      .def_property_readonly(
          "id",
          [](AgentState& state) {
            return bytesObject(ask(state, "id", [](Agent& asked) { return asked.card().agent; }));
          },
          "16 bytes that identify this agent. After a restart they differ.")
      .def_property_readonly("backends", backends,
                             "The backends in order of preference, as {name: (open, text)}. The "
                             "text gives the\nconfiguration of an open backend, or the reason why "
                             "a backend is not open.")
      .def("statistics", statistics,
           Doc{"Returns the agent's counters since it was opened, as a dict."})
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](AgentState& state, const py::args&) { state.close(); })
      .def("__repr__", py::overload_cast<const AgentState&>(&describe));
  bindMemory(agent);
  bindPeers(agent);
  bindTransfers(agent);
  bindEvents(agent);
  py::module_::import("atexit").attr("register")(py::cpp_function(&AgentState::closeAll));
  return agent;
}

}  // namespace viaduct::python
