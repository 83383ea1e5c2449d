#include "nixl/lists.h"

#include <fmt/format.h>

#include <array>

#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

constexpr std::array kMemoryNames{"DRAM_SEG", "VRAM_SEG", "BLK_SEG", "OBJ_SEG", "FILE_SEG"};

}  // namespace

void Rows::addDevice(std::uint64_t of_next) {
  if (!devices.empty()) {
    devices.push_back(of_next);
  } else if (count() == 0) {
    device = of_next;
  } else if (of_next != device) [[unlikely]] {
    devices.assign(count(), device);
    devices.push_back(of_next);
  }
}

void Rows::setDevice(std::size_t row, std::uint64_t to) {
  if (deviceOf(row) == to) return;
  if (devices.empty()) devices.assign(count(), device);
  devices[row] = to;
}

void Rows::remove(std::size_t row) {
  const auto erase = [row](auto& from) {
    if (!from.empty()) from.erase(from.begin() + static_cast<std::ptrdiff_t>(row));
  };
  erase(extents);
  erase(runs);
  erase(devices);
}

Rows& List::ownRows() {
  if (rows.use_count() > 1) rows = std::make_shared<Rows>(*rows);
  return *rows;
}

const char* memoryName(Memory memory) { return kMemoryNames[static_cast<std::size_t>(memory)]; }

void requireAddresses(Memory memory, const char* operation) {
  if (hasAddresses(memory)) return;
  fail(Outcome::kNotSupported,
       fmt::format("{}: {} needs a backend that this release of Viaduct does not have; DRAM, VRAM, "
                   "FILE and OBJ work (docs/nixl.md)",
                   operation, memoryName(memory)));
}

}  // namespace viaduct::nixl
