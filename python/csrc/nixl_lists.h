// Descriptor lists of the `nixl` module. Threads: with the GIL. A reader without the GIL shares the
// rows: a list copies shared rows before it changes them.
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

// With the numbers that programs compare with.
enum class Memory : std::uint8_t { kDram, kVram, kBlock, kObject, kFile };
const char* memoryName(Memory memory);  // "DRAM_SEG"
// Raises nixlNotSupportedError for memory that this release cannot move.
void requireHost(Memory memory, const char* operation);
// An agent's name. It may come from outside and be no UTF-8.
py::object nameObject(std::string_view name);

struct List {
  Memory memory = Memory::kDram;
  std::shared_ptr<Rows> rows = std::make_shared<Rows>();
};
// Memory of the agent that the call names.
struct TransferList : List {};
// Registered memory. Each row has metadata: text or bytes.
struct RegistrationList : List {
  std::vector<std::string> metadata = {};
};
// Memory of several agents.
struct RemoteList : List {
  std::vector<std::string> agents = {};
};

// A list as bytes: versioned and with a checksum.
std::string encodeList(const TransferList& list);
std::string encodeList(const RegistrationList& list);
std::string encodeList(const RemoteList& list);
// A list of one of the three types, from bytes of whatever origin. Raises what says what is wrong
// with them.
py::object decodeList(std::string_view state);

void bindLists(py::module_& module);

}  // namespace viaduct::python::nixl
