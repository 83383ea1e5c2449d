#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "base/bytes.h"
#include "base/lists.h"
#include "bindings.h"
#include "gil.h"
#include "memory_of.h"
#include "nixl/agent.h"
#include "nixl/exchange.h"
#include "nixl/status.h"
#include "nixl_bindings.h"
#include "nixl_vectorcall.h"
#include "planned_transfer.h"
#include "rows.h"

namespace viaduct::nixl {
namespace {

using py::operator""_a;
using python::parseIndices;
using python::priorityOf;

class GilLock : public AgentLock {
 public:
  void* unlock() override { return PyEval_SaveThread(); }
  void lock(void* unlocked) override {
    python::Unlocked::restore(static_cast<PyThreadState*>(unlocked));
  }
};

// Guarded by the GIL. Destroyed agents stay in the list until the next agent opens.
std::vector<std::weak_ptr<NixlAgent>>& openAgents() {
  static std::vector<std::weak_ptr<NixlAgent>> agents;
  return agents;
}

std::shared_ptr<NixlAgent> openAgent(std::string name, bool capture_telemetry) {
  static GilLock gil;
  std::shared_ptr<NixlAgent> opened(
      new NixlAgent(std::move(name), capture_telemetry, gil),
      [](NixlAgent* agent) { python::unlockedFromDestructor([agent] { delete agent; }); });
  std::erase_if(openAgents(), [](const auto& one) { return one.expired(); });
  openAgents().push_back(opened);
  return opened;
}

std::unique_ptr<Exchange> exchangeOf(const std::shared_ptr<NixlAgent>& agent) {
  return std::make_unique<Exchange>([weak = std::weak_ptr(agent)](const auto& call) {
    const python::Locked gil;
    if (const auto one = weak.lock()) call(*one);
  });
}

// Raises OSError if the port is taken.
std::uint16_t listenOn(Exchange& self, std::uint16_t port) {
  const auto listening = self.listen(port);
  if (listening) return *listening;
  errno = listening.error().os_errno;
  PyErr_SetFromErrno(PyExc_OSError);
  throw py::error_already_set();
}

py::dict dictOf(const Parameters& parameters) {
  py::dict out;
  for (const auto& [name, value] : parameters) out[py::str(name)] = value;
  return out;
}

py::tuple parametersOf(const NixlAgent& agent, const Plugin& plugin) {
  py::list memories;
  for (const Memory memory : agent.memoriesOf(plugin)) memories.append(memoryName(memory));
  return py::make_tuple(dictOf(plugin.defaults()), memories);
}

auto pluginNames() { return base::mapped(plugins(), &Plugin::name); }
py::tuple pluginParameters(const NixlAgent& agent, const std::string& type) {
  return parametersOf(agent, pluginOf(type));
}
py::tuple backendParameters(const NixlAgent& agent, std::uint64_t backend) {
  return parametersOf(agent, agent.backend(backend));
}

py::list query(NixlAgent& agent, const RegistrationList& descs, std::uint64_t backend) {
  py::list out;
  for (const auto& one : agent.query(descs, agent.backend(backend)))
    out.append(one ? py::object(dictOf(*one)) : py::none());
  return out;
}

py::dict takeNotes(NixlAgent& agent) {
  py::dict notes;
  for (const Note& note : agent.takeNotes()) {
    const py::object from = nameObject(note.from);
    if (!notes.contains(from)) notes[from] = py::list();
    py::list(notes[from]).append(py::bytes(note.text().data(), note.text().size()));
  }
  return notes;
}

bool waitFor(NixlAgent& agent, const py::object& timeout) {
  const int events = agent.fileno();
  const auto readable =
      python::waitUnlocked(python::deadlineOf("wait", timeout),
                           [&](Deadline slice) { return NixlAgent::awaitEvents(events, slice); });
  agent.progress();
  return readable.has_value();
}

// Copies a name, a message or metadata from a str, bytes or another buffer.
std::string bytesOf(const py::object& value, const char* what) {
  if (value.is_none()) throw py::type_error(fmt::format("{} is None; use str or bytes", what));
  return std::string(base::textOf(python::NoteBytes(what, value).bytes()));
}
std::string noteOf(const py::object& value) { return bytesOf(value, "the message"); }

py::object stateObject(bool done) { return done ? successObject() : inProgressObject(); }

// A function for Python that calls a member function and returns NIXL_SUCCESS. It ignores the
// arguments `Ignored`, with which programs for NIXL choose backends.
template <class... Ignored, class... Arguments>
auto succeeding(void (NixlAgent::*member)(Arguments...)) {
  return [member](NixlAgent& self, Arguments... arguments, const Ignored&...) {
    (self.*member)(arguments...);
    return successObject();
  };
}

py::bytes pyBytes(const std::string& text) { return {text.data(), text.size()}; }

void bindTelemetry(py::module_& module) {
  py::class_<Telemetry>(module, "nixlXferTelemetry", "The times of one transfer in microseconds.")
      .def(py::init<>())
      .def_readwrite("startTime", &Telemetry::start_us)
      .def_readwrite("postDuration", &Telemetry::post_us)
      .def_readwrite("xferDuration", &Telemetry::transfer_us)
      .def_readwrite("totalBytes", &Telemetry::bytes)
      .def_readwrite("descCount", &Telemetry::descriptors);
}

using AgentClass = py::class_<NixlAgent, std::shared_ptr<NixlAgent>>;

void bindBackends(AgentClass& agent) {
  agent.def("getAvailPlugins", [](const NixlAgent&) { return pluginNames(); })
      .def("getPluginParams", pluginParameters, "type"_a)
      .def(
          "createBackend",
          [](NixlAgent& self, const std::string& type,
             const std::map<std::string, std::string>& of) {
            return self.createBackend(type, Parameters(of.begin(), of.end()));
          },
          "type"_a, "initParams"_a = py::dict())
      .def("getBackendParams", backendParameters, "backend"_a)
      .def("queryMem", query, "descs"_a, "backend"_a);
}

void bindMetadata(AgentClass& agent) {
  agent
      .def("registerMem", succeeding<py::object>(&NixlAgent::registerMemory), "descs"_a,
           "backends"_a = py::tuple())
      .def("deregisterMem", succeeding<py::object>(&NixlAgent::deregisterMemory), "descs"_a,
           "backends"_a = py::tuple())
      .def("getLocalMD", [](NixlAgent& self) { return pyBytes(*self.metadata()); })
      .def(
          "getLocalPartialMD",
          [](NixlAgent& self, const RegistrationList& descs, bool inc_conn_info,
             const py::object&) { return pyBytes(self.partialMetadata(descs, inc_conn_info)); },
          "descs"_a, "inc_conn_info"_a = false, "backends"_a = py::tuple())
      .def(
          "loadRemoteMD",
          [](NixlAgent& self, const py::object& blob) {
            return pyBytes(self.addRemote(bytesOf(blob, "the metadata")));
          },
          "remote_metadata"_a)
      .def("invalidateRemoteMD", succeeding(&NixlAgent::removeRemote), "remote_agent"_a)
      .def("checkRemoteMD", &NixlAgent::knowsRemote, "remote_agent"_a, "descs"_a = TransferList())
      .def("offerPart", &NixlAgent::offerPart, "label"_a, "blob"_a,
           "Offers partial metadata to agents that find this one by name.")
      .def("withdrawParts", &NixlAgent::withdrawParts)
      .def(
          "makeConnection",
          [](NixlAgent& self, const std::string& name, const py::object&) {
            const Peer peer = self.connection(name);
            check(python::waitUnlocked(python::WaitLimit(kReachWithin),
                                       [&](Deadline slice) { return peer.ready(slice); }));
            return successObject();
          },
          "remote_agent"_a, "backends"_a = py::tuple());
}

// Programs make the calls below for each transfer, or in each round of a polling loop. So they use
// nixl_vectorcall.h.

PyObject *read_object = nullptr, *write_object = nullptr;  // live as long as the process

Direction directionOf(PyObject* given) {
  if (given == write_object) return Direction::kWrite;
  if (given == read_object) return Direction::kRead;
  return py::handle(given).cast<Direction>();
}

std::uint64_t handleOf(PyObject* given) { return python::parseUnsigned(given, "the handle"); }
py::object handleObject(std::uint64_t handle) { return py::int_(handle); }

std::string noteOrNone(PyObject* given) {
  const bool none = given == nullptr || (PyBytes_Check(given) && PyBytes_GET_SIZE(given) == 0);
  return none ? std::string() : noteOf(py::reinterpret_borrow<py::object>(given));
}
RequestOptions optionsOf(PyObject* note, PyObject* priority) {
  RequestOptions options{.note = noteOrNone(note)};
  const bool normal =
      priority == nullptr ||
      (PyUnicode_Check(priority) && PyUnicode_CompareWithASCIIString(priority, "normal") == 0);
  if (!normal) options.priority = priorityOf(py::handle(priority).cast<std::string>());
  return options;
}

constexpr Method<9> kMakeRequest{
    "makeXferReq",
    {"operation", "local_side", "local_indices", "remote_side", "remote_indices", "notif_msg",
     "backend", "skip_desc_merg", "priority"},
    5};
py::object makeRequest(NixlAgent& self, const Arguments<9>& given) {
  const Direction direction = directionOf(given[0]);
  const std::uint64_t local = handleOf(given[1]), remote = handleOf(given[3]);
  Indices here = parseIndices(given[2]), there = parseIndices(given[4]);
  return handleObject(self.makeRequest(direction, local, std::move(here), remote, std::move(there),
                                       optionsOf(given[5], given[8])));
}

constexpr Method<7> kCreateRequest{"createXferReq",
                                   {"operation", "local_descs", "remote_descs", "remote_agent",
                                    "notif_msg", "backend", "priority"},
                                   4};
py::object createRequest(NixlAgent& self, const Arguments<7>& given) {
  const auto listOf = [](PyObject* list) { return py::handle(list).cast<const TransferList&>(); };
  return handleObject(
      self.makeRequest(directionOf(given[0]), listOf(given[1]), listOf(given[2]),
                       bytesOf(py::reinterpret_borrow<py::object>(given[3]), "the agent's name"),
                       optionsOf(given[4], given[6])));
}

constexpr Method<2> kPostRequest{"postXferReq", {"reqh", "notif_msg"}, 1};
py::object postRequest(NixlAgent& self, const Arguments<2>& given) {
  return stateObject(self.postRequest(handleOf(given[0]), noteOrNone(given[1])));
}

constexpr Method<1> kCheckRequest{"getXferStatus", {"reqh"}, 1};
py::object checkRequest(NixlAgent& self, const Arguments<1>& given) {
  return stateObject(self.checkRequest(handleOf(given[0])));
}

constexpr Method<1> kReleaseRequest{"releaseXferReq", {"reqh"}, 1};
py::object releaseRequest(NixlAgent& self, const Arguments<1>& given) {
  self.releaseRequest(handleOf(given[0]));
  return successObject();
}

constexpr Method<2> kTakeNotes{"getNotifs", {"notif_map", "backends"}, 0};
py::object newNotes(NixlAgent& self, const Arguments<2>&) { return takeNotes(self); }

void bindTransfers(AgentClass& agent) {
  bindVectorcall<kMakeRequest, makeRequest>(agent);
  bindVectorcall<kCreateRequest, createRequest>(agent);
  bindVectorcall<kPostRequest, postRequest>(agent);
  bindVectorcall<kCheckRequest, checkRequest>(agent);
  bindVectorcall<kReleaseRequest, releaseRequest>(agent);
  bindVectorcall<kTakeNotes, newNotes>(agent);
  agent
      .def(
          "prepXferDlist",
          [](NixlAgent& self, const std::string& name, const TransferList& descs,
             const py::object&) { return self.prepare(name, descs); },
          "agent_name"_a, "descs"_a, "backend"_a = py::tuple())
      .def("releasedDlistH", succeeding(&NixlAgent::releasePrepared), "handle"_a)
      .def("getXferTelemetry", &NixlAgent::telemetry, "reqh"_a)
      .def("queryXferBackend", &NixlAgent::requestBackend, "reqh"_a)
      .def("xferPath", &NixlAgent::requestPath, "reqh"_a,
           "How the last post of a transfer moved its bytes: \"file/uring 1.0 MiB in 16 ops\".");
}

void bindExchange(py::module_& module) {
  py::class_<Exchange>(module, "Exchange",
                       "Sends, fetches and serves an agent's metadata in the background.")
      .def(py::init(&exchangeOf), "agent"_a)
      .def("listen", &listenOn, "port"_a)
      .def("send", &Exchange::send, "host"_a, "port"_a, "blob"_a)
      .def("fetch", &Exchange::fetch, "host"_a, "port"_a)
      .def("invalidate", &Exchange::invalidate, "host"_a, "port"_a, "name"_a)
      .def("find", &Exchange::find, "remote_agent"_a, "label"_a = "",
           "Finds another agent at the meeting place, the directory server of agent names.");
}

void bindNotes(AgentClass& agent) {
  agent
      .def(
          "genNotif",
          [](NixlAgent& self, const std::string& name, const py::object& note, const py::object&) {
            self.sendNote(name, noteOf(note));
            return successObject();
          },
          "remote_agent"_a, "notif_msg"_a, "backends"_a = py::tuple())
      .def("fileno", &NixlAgent::fileno)
      .def("wait", &waitFor, "timeout"_a = py::none());
}

}  // namespace

void closeAgents() {
  // close() releases the GIL, so another thread may open or drop agents during the loop.
  while (!openAgents().empty()) {
    const auto held = openAgents().back().lock();
    openAgents().pop_back();
    if (held) held->close();
  }
}

void bindAgent(py::module_& module) {
  py::enum_<Direction>(module, "nixl_xfer_op_t", "The direction of a transfer.")
      .value("NIXL_READ", Direction::kRead)
      .value("NIXL_WRITE", Direction::kWrite)
      .export_values();
  read_object = py::object(module.attr("NIXL_READ")).release().ptr();
  write_object = py::object(module.attr("NIXL_WRITE")).release().ptr();
  bindTelemetry(module);
  module.def("plugins", pluginNames, "The names of all plugins of this build.");
  AgentClass agent(module, "nixlAgent");
  agent.def(py::init(&openAgent), "name"_a, "capture_telemetry"_a)
      .def_property_readonly("name", &NixlAgent::name)
      .def_property_readonly("capturesTelemetry", &NixlAgent::capturesTelemetry);
  bindBackends(agent);
  bindMetadata(agent);
  bindExchange(module);
  bindTransfers(agent);
  bindNotes(agent);
}

}  // namespace viaduct::nixl

namespace viaduct::python {
namespace {

// Adds functions that take raw addresses as integers. Tests and examples use these functions.
// NOLINTBEGIN(performance-no-int-to-ptr)
void bindUtilities(py::module_& module) {
  module.def(
      "place_of",
      [](const py::object& array) {
        const ObjectMemory memory = denseMemoryOf("get the descriptors of an array", array);
        return py::make_tuple(memory.address, memory.bytes());
      },
      "Returns (address, bytes) of a contiguous array in host memory.");
  module.def("malloc_passthru", [](std::size_t bytes) {
    constexpr std::size_t kPage = 4096;
    void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (memory == nullptr) throw std::bad_alloc();
    return reinterpret_cast<std::uintptr_t>(memory);
  });
  module.def("free_passthru",
             [](std::uintptr_t address) { std::free(reinterpret_cast<void*>(address)); });
  module.def("ba_buf", [](std::uintptr_t address, std::size_t bytes) {
    std::memset(reinterpret_cast<void*>(address), 0xba, bytes);
  });
  module.def("same_bytes", [](std::uintptr_t one, std::uintptr_t other, std::size_t bytes) {
    return std::memcmp(reinterpret_cast<const void*>(one), reinterpret_cast<const void*>(other),
                       bytes) == 0;
  });
}
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace

void bindNixl(py::module_& module) {
  py::module_ sub = module.def_submodule("nixl", "The compiled part of the package nixl.");
  nixl::bindStatus(sub);
  nixl::bindLists(sub);
  nixl::bindAgent(sub);
  bindUtilities(sub);
  for (const auto item : py::dict(sub.attr("__dict__")))
    if (PyType_Check(item.second.ptr()))
      py::setattr(item.second, "__module__", py::str("nixl._bindings"));
  // Closing the agents at exit ends their transfers before the interpreter frees memory.
  py::module_::import("atexit").attr("register")(py::cpp_function(&nixl::closeAgents));
}

}  // namespace viaduct::python
