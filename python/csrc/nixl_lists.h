// Declares the descriptor lists of the `nixl` module. Threads: call with the GIL. A thread without
// the GIL may read shared rows, because a list copies shared rows before it changes them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rows.h"

namespace viaduct::python::nixl {

// Programs compare these numbers with NIXL's, so the numbers must not change.
enum class Memory : std::uint8_t { kDram, kVram, kBlock, kObject, kFile };
const char* memoryName(Memory memory);  // for example "DRAM_SEG"
// Files and objects, of which the bytes lie at offsets and not at addresses.
constexpr bool isStorage(Memory memory) {
  return memory == Memory::kObject || memory == Memory::kFile;
}
constexpr bool hasAddresses(Memory memory) {
  return memory == Memory::kDram || memory == Memory::kVram;
}
// Raises nixlNotSupportedError for memory without addresses.
void requireAddresses(Memory memory, const char* operation);
// Makes a Python str of an agent's name. A name from another process may not be valid UTF-8.
py::object nameObject(std::string_view name);

struct List {
  Memory memory = Memory::kDram;
  std::shared_ptr<Rows> rows = std::make_shared<Rows>();
};
// Describes memory of one agent. The call that takes the list names the agent.
struct TransferList : List {};
// Describes registered memory. Each row has metadata: text or bytes.
struct RegistrationList : List {
  std::vector<std::string> metadata = {};
};
// Describes memory of several agents. Each row names its agent.
struct RemoteList : List {
  std::vector<std::string> agents = {};
};

// Encodes a list as bytes, with a version and a checksum.
std::string encodeList(const TransferList& list);
std::string encodeList(const RegistrationList& list);
std::string encodeList(const RemoteList& list);
// Decodes a list of one of the three types from untrusted bytes. Raises nixlInvalidParamError,
// which names the damage.
py::object decodeList(std::string_view state);

void bindLists(py::module_& module);

}  // namespace viaduct::python::nixl
