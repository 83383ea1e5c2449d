// The descriptor lists of NIXL's calls. Threads: plain values. Copies share their rows until one of
// them changes, so a thread may read the rows of its copy while another changes the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nixl/rows.h"

namespace viaduct::nixl {

// Programs compare these numbers with NIXL's, so the numbers must not change.
enum class Memory : std::uint8_t { kDram, kVram, kBlock, kObject, kFile };
const char* memoryName(Memory memory);  // for example "DRAM_SEG"
// Whether the memory is files or objects, whose bytes lie at offsets and not at addresses.
constexpr bool isStorage(Memory memory) {
  return memory == Memory::kObject || memory == Memory::kFile;
}
constexpr bool hasAddresses(Memory memory) {
  return memory == Memory::kDram || memory == Memory::kVram;
}
// Fails for memory without addresses.
void requireAddresses(Memory memory, const char* operation);

struct List {
  Memory memory = Memory::kDram;
  std::shared_ptr<Rows> rows = std::make_shared<Rows>();
  std::vector<std::string> texts = {};  // one for each row, in a list with kHasTexts

  // The rows, for a change. Copies them first if another list shares them.
  Rows& ownRows();
};
// Describes memory of one agent. The call that takes the list names the agent.
struct TransferList : List {
  static constexpr bool kHasTexts = false;
};
// Describes registered memory. The text of a row is its metadata, which may be any bytes.
struct RegistrationList : List {
  static constexpr bool kHasTexts = true;
};
// Describes memory of several agents. The text of a row is the name of its agent.
struct RemoteList : List {
  static constexpr bool kHasTexts = true;
};

template <class L>
void removeRow(L& list, std::size_t row) {
  list.ownRows().remove(row);
  if (L::kHasTexts) list.texts.erase(list.texts.begin() + static_cast<std::ptrdiff_t>(row));
}
// New rows are zeros.
template <class L>
void resizeRows(L& list, std::size_t rows) {
  list.ownRows().resize(rows);
  if (L::kHasTexts) list.texts.resize(rows);
}

// Encodes a list as bytes, with a version and a checksum.
std::string encodeList(const TransferList& list);
std::string encodeList(const RegistrationList& list);
std::string encodeList(const RemoteList& list);
// Decodes a list from untrusted bytes. The Failure names the damage.
std::variant<TransferList, RegistrationList, RemoteList> decodeList(std::string_view state);

}  // namespace viaduct::nixl
