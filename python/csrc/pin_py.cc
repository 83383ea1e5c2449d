#include <fmt/format.h>
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <optional>
#include <type_traits>

#include "agent_state.h"
#include "bindings.h"
#include "errors.h"
#include "selection.h"

namespace viaduct::python {
namespace {

// Raises UnsupportedError for a GPU, a file or an object: its addresses are no pointers.
void needMemory(const PinState& pin) {
  if (pin.info().kind == MemoryKind::kHost) return;
  const char* const kind = memoryKindName(pin.info().kind);
  raise({.code = Code::kUnsupported,
         .operation = "view the pin",
         .detail = fmt::format("no pointer of the CPU reaches the bytes of a pinned {}", kind),
         .remedy = fmt::format("read the {} into allocated memory, and view that memory", kind)});
}

// Implements the buffer protocol: exports the memory as one-dimensional bytes.
int viewPin(PyObject* self, Py_buffer* view, int flags) {
  try {
    auto& pin = py::handle(self).cast<PinState&>();
    pin.need("view the pin");
    needMemory(pin);
    const int made = PyBuffer_FillInfo(
        view, self, reinterpret_cast<void*>(static_cast<std::uintptr_t>(pin.info().address)),
        static_cast<Py_ssize_t>(pin.info().bytes), pin.isReadOnly() ? 1 : 0, flags);
    if (made == 0) pin.addView();
    return made;
  } catch (py::error_already_set& raised) {
    raised.restore();
    view->obj = nullptr;
    return -1;
  }
}

void dropView(PyObject* self, Py_buffer*) { py::handle(self).cast<PinState&>().dropView(); }

std::string describe(const PinState& pin) {
  return fmt::format("<viaduct.Pin {}{} bytes {} {:#x}{}{}>",
                     pin.info().label.empty() ? "" : fmt::format("{:?} ", pin.info().label),
                     pin.info().bytes,
                     pin.info().kind != MemoryKind::kHost
                         ? fmt::format("of {} at", memoryKindName(pin.info().kind))
                         : "at",
                     pin.info().address, pin.isReadOnly() ? ", read-only" : "",
                     pin.isReleased() ? ", released" : "");
}

constexpr auto kPin = R"(Memory that peers of the agent can reach, until release().

    with agent.allocate(1 << 20, label="inbox") as pin:
        array = numpy.frombuffer(pin, dtype="float32")    # a view, no copy
        array[:] = 1
        agent.write(peer, pin, remote)                    # the whole pin
        blocks = pin.blocks(4096)                         # cut into blocks of 4,096 bytes

Agent.allocate() and Agent.pin() return a Pin. memoryview(pin), numpy.frombuffer(pin) and
torch.frombuffer(pin) make views of the pin's memory by the buffer protocol. The memory stays valid
while a view lives, also after release(). Garbage collection releases a pin.

Agent.pin_file() and pin_object() return a Pin too. Its `kind` is "file", "block" or "object", and
its addresses are only for blocks: a view of it raises UnsupportedError.)";

constexpr auto kRemotePin = R"(Memory that a peer has pinned, for the remote side of a transfer.

    inbox = peer.pin("inbox", timeout=10)
    agent.write(peer, data, inbox)                       # the whole pin
    agent.write(peer, data, inbox.blocks(4096)[[0, 5]])
)";

constexpr Doc kBlocksOfPin{R"(
Divides the memory from `offset` on into blocks of `bytes` bytes each, and returns the Blocks.

Neighbouring blocks touch, or begin `stride` bytes apart. Without `count`, the blocks fill the
memory, which then has to end with a whole block.)"};

const PinInfo& infoOf(const PinState& pin) { return pin.info(); }
const PinInfo& infoOf(const PinInfo& pin) { return pin; }

// Adds the members that the Python classes Pin and RemotePin share.
template <class T, class... Options>
void bindInfo(py::class_<T, Options...>& pins) {
  pins.def_property_readonly(
          "address", [](const T& pin) { return infoOf(pin).address; },
          "The address at which the memory begins. No pointer for a file or object.")
      .def_property_readonly(
          "bytes", [](const T& pin) { return infoOf(pin).bytes; },
          "The size of the pinned memory in bytes.")
      .def("__len__", [](const T& pin) { return infoOf(pin).bytes; })
      .def_property_readonly(
          "kind", [](const T& pin) { return memoryKindName(infoOf(pin).kind); },
          "\"host\", \"device\" (a GPU), \"file\", \"block\" (a block device) or \"object\".")
      .def_property_readonly(
          "label", [](const T& pin) { return infoOf(pin).label; },
          "The name under which peers find the memory with Peer.pin(); may be empty.")
      .def(
          "blocks",
          [](const py::object& self, std::uint64_t bytes, std::uint64_t stride,
             std::uint64_t offset, std::optional<std::uint64_t> count) {
            const auto& pin = self.cast<const T&>();
            if constexpr (std::is_same_v<T, PinState>) pin.need("blocks");
            return blocksWithin(infoOf(pin), {bytes, stride, offset, count}, self);
          },
          py::arg("bytes"), py::kw_only(), py::arg("stride") = 0, py::arg("offset") = 0,
          py::arg("count") = py::none(), kBlocksOfPin);
}

}  // namespace

void bindPins(py::module_& module) {
  py::class_<PinState, std::shared_ptr<PinState>> pins(
      module, "Pin", kPin, py::custom_type_setup([](PyHeapTypeObject* type) {
        type->ht_type.tp_as_buffer = &type->as_buffer;
        type->as_buffer.bf_getbuffer = viewPin;
        type->as_buffer.bf_releasebuffer = dropView;
      }));
  bindInfo(pins);
  pins.def_property_readonly(
          "device", [](const PinState& pin) { return pin.info().device; },
          "The number of the GPU, if the kind is \"device\".")
      .def_property_readonly("read_only", &PinState::isReadOnly,
                             "Whether transfers may only read the memory.")
      .def_property_readonly("released", &PinState::isReleased, "Whether release() was called.")
      .def_property_readonly("agent", &PinState::agent, "The agent that pinned the memory.")
      .def("release", &PinState::release, Doc{R"(
Withdraws the memory. When release() returns, no peer reaches the memory and no transfer uses it.

Transfers that still use the memory end with an error. Views keep the memory valid. PeerLostError: a
peer was stopped in the middle of a copy, and may still write to the memory until its `settled` is
True. The agent keeps the pinned object alive until that time. release() may be called twice.)"})
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](PinState& pin, const py::args&) { pin.release(); })
      .def("__repr__", py::overload_cast<const PinState&>(&describe));

  py::class_<PinInfo> remotes(module, "RemotePin", kRemotePin);
  bindInfo(remotes);
  remotes
      .def_property_readonly(
          "read_only", [](const PinInfo& pin) { return pin.access == MemoryAccess::kReadOnly; },
          "Whether transfers may only read the memory.")
      .def_property_readonly(
          "write_only", [](const PinInfo& pin) { return pin.access == MemoryAccess::kWriteOnly; },
          "Whether transfers may only write the memory, because the card grants no reading.")
      .def(py::self == py::self)
      .def("__repr__", [](const PinInfo& pin) {
        return fmt::format("<viaduct.RemotePin {:?} {} bytes at {:#x}>", pin.label, pin.bytes,
                           pin.address);
      });
}

}  // namespace viaduct::python
