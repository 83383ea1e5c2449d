#include "memory_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "errors.h"

namespace viaduct::python {
namespace {

// DLPack prescribes this layout for tensors that libraries exchange within one process.
struct DlDevice {
  std::int32_t type, id;
};
constexpr std::int32_t kDlCpu = 1, kDlCuda = 2, kDlCudaHost = 3, kDlRocmHost = 11;
// For __dlpack__: the caller orders its own work, as docs/gpu.md asks.
constexpr int kNoStream = -1;
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t axes;
  std::uint8_t type_code, type_bits;
  std::uint16_t type_lanes;
  std::int64_t* shape;
  std::int64_t* strides;  // in items; null means row-major (C) order
  std::uint64_t byte_offset;
};

[[noreturn]] void refuseDevice(const char* operation, py::handle object, std::int32_t type) {
  raise({.code = Code::kUnsupported,
         .operation = operation,
         .detail = fmt::format("a {} lies in memory of a device of DLPack's type {}",
                               typeName(object), type),
         .cause = "only memory of the host and of CUDA's GPUs can be pinned",
         .remedy = "copy it to host memory, and pin the copy"});
}

void rowMajor(ObjectMemory& memory) {
  memory.strides.resize(memory.shape.size());
  std::int64_t stride = memory.item_bytes;
  for (std::size_t axis = memory.shape.size(); axis-- > 0;) {
    memory.strides[axis] = stride;
    stride *= memory.shape[axis];
  }
}

ObjectMemory ofBuffer(const py::object& view) {
  const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(view.ptr());
  ObjectMemory memory{.address = reinterpret_cast<std::uintptr_t>(buffer.buf),
                      .item_bytes = buffer.itemsize,
                      .read_only = buffer.readonly != 0,
                      .keeper = view};
  memory.shape.assign(buffer.shape, buffer.shape + buffer.ndim);
  memory.strides.assign(buffer.strides, buffer.strides + buffer.ndim);
  return memory;
}

ObjectMemory ofArrayInterface(const char* operation, py::handle object, const char* interface) {
  const py::dict described = object.attr(interface);
  const py::object data = described["data"];
  if (!py::isinstance<py::tuple>(data))
    raiseMisuse(operation,
                fmt::format("the {} of a {} has no address", interface, typeName(object)),
                "give an object that supports the buffer protocol or DLPack");
  const py::tuple pointer = data;
  ObjectMemory memory{.address = pointer[0].cast<std::uint64_t>(),
                      .read_only = pointer[1].cast<bool>(),
                      .keeper = py::reinterpret_borrow<py::object>(object)};
  const auto type = described["typestr"].cast<std::string>();
  memory.item_bytes = std::stoll(type.substr(std::min<std::size_t>(type.size(), 2)));
  memory.shape = py::list(described["shape"]).cast<std::vector<std::int64_t>>();
  if (described.contains("strides") && !described["strides"].is_none())
    memory.strides = py::list(described["strides"]).cast<std::vector<std::int64_t>>();
  else
    rowMajor(memory);
  if (memory.strides.size() != memory.shape.size())
    raiseMisuse(operation,
                fmt::format("a {} has {} axes and {} strides", typeName(object),
                            memory.shape.size(), memory.strides.size()),
                "give an object with a buffer or with DLPack");
  return memory;
}

// Returns the GPU of an object, or nothing for memory that the CPU can access.
std::optional<std::uint32_t> gpuOfDlpack(const char* operation, py::handle object) {
  const py::tuple device = object.attr("__dlpack_device__")();
  const auto type = py::int_(device[0]).cast<std::int32_t>();
  if (type == kDlCuda) return py::int_(device[1]).cast<std::uint32_t>();
  if (type != kDlCpu && type != kDlCudaHost && type != kDlRocmHost)
    refuseDevice(operation, object, type);
  return std::nullopt;
}

// The interface does not name the GPU. An object without DLPack is assumed to be on the first GPU.
// If that is wrong, the driver refuses the memory.
ObjectMemory ofCudaInterface(const char* operation, py::handle object) {
  ObjectMemory memory = ofArrayInterface(operation, object, "__cuda_array_interface__");
  memory.gpu = 0;
  if (py::hasattr(object, "__dlpack_device__")) memory.gpu = gpuOfDlpack(operation, object);
  return memory;
}

ObjectMemory ofDlpack(const char* operation, py::handle object) {
  const auto gpu = gpuOfDlpack(operation, object);
  // No library consumes this capsule, so its destructor frees the exported tensor.
  const py::object capsule =
      gpu ? object.attr("__dlpack__")(py::arg("stream") = kNoStream) : object.attr("__dlpack__")();
  const auto* tensor =
      static_cast<const DlTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (tensor == nullptr) throw py::error_already_set();
  ObjectMemory memory{
      .address = reinterpret_cast<std::uintptr_t>(tensor->data) + tensor->byte_offset,
      .item_bytes = tensor->type_bits * tensor->type_lanes / 8,
      .gpu = gpu,
      .keeper = capsule};
  memory.shape.assign(tensor->shape, tensor->shape + tensor->axes);
  if (tensor->strides == nullptr) {
    rowMajor(memory);
    return memory;
  }
  for (std::int32_t axis = 0; axis < tensor->axes; ++axis)
    memory.strides.push_back(tensor->strides[axis] * memory.item_bytes);
  return memory;
}

}  // namespace

bool ObjectMemory::isDense(std::size_t first) const {
  std::vector<std::size_t> axes(shape.size() - std::min(first, shape.size()));
  std::iota(axes.begin(), axes.end(), first);
  std::sort(axes.begin(), axes.end(), [&](auto a, auto b) { return strides[a] < strides[b]; });
  std::int64_t next = item_bytes;
  for (const std::size_t axis : axes) {
    if (shape[axis] == 1) continue;
    if (strides[axis] != next) return false;
    next *= shape[axis];
  }
  return true;
}

std::uint64_t ObjectMemory::bytes(std::size_t first) const {
  std::int64_t product = item_bytes;
  for (std::size_t axis = first; axis < shape.size(); ++axis) product *= shape[axis];
  return static_cast<std::uint64_t>(product);
}

ObjectMemory memoryOf(const char* operation, py::handle object) {
  if (py::hasattr(object, "__cuda_array_interface__")) return ofCudaInterface(operation, object);
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    if (PyObject* view = PyMemoryView_FromObject(object.ptr()))
      return ofBuffer(py::reinterpret_steal<py::object>(view));
    // numpy exports no buffer for custom types such as bfloat16, but __array_interface__ gives the
    // address of such an array.
    const py::error_already_set refused;  // takes the error, which hasattr() would clear
    if (!py::hasattr(object, "__array_interface__")) throw refused;
  }
  if (py::hasattr(object, "__array_interface__"))
    return ofArrayInterface(operation, object, "__array_interface__");
  if (py::hasattr(object, "__dlpack__")) return ofDlpack(operation, object);
  raiseWrongType(operation, object,
                 "give a buffer (bytearray, mmap, numpy array), a tensor, or (address, bytes)");
}

ObjectMemory denseMemoryOf(const char* operation, py::handle object) {
  ObjectMemory memory = memoryOf(operation, object);
  if (!memory.isDense())
    raiseMisuse(operation,
                fmt::format("the {} of shape ({}) has gaps between its items", typeName(object),
                            fmt::join(memory.shape, ", ")),
                "give a contiguous array, or the whole array that contains these items");
  return memory;
}

Run rowsOf(const char* operation, const ObjectMemory& memory) {
  if (memory.shape.empty()) return {.base = memory.address, .bytes = memory.bytes(), .count = 1};
  const std::uint64_t bytes = memory.bytes(1);
  const auto count = static_cast<std::uint64_t>(memory.shape.front());
  const bool ascending = count == 1 || memory.strides.front() >= static_cast<std::int64_t>(bytes);
  if (!memory.isDense(1) || !ascending)
    raiseMisuse(operation,
                fmt::format("shape ({}) with strides ({}) is not made of contiguous rows",
                            fmt::join(memory.shape, ", "), fmt::join(memory.strides, ", ")),
                "slice along the first axis only, so that array[i] is contiguous for each i");
  return {.base = memory.address,
          .stride = count == 1 ? 0 : static_cast<std::uint64_t>(memory.strides.front()),
          .bytes = bytes,
          .count = count};
}

}  // namespace viaduct::python
