#include "nixl/lists.h"

#include <fmt/format.h>

#include <array>

#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

constexpr std::array kMemoryNames{"DRAM_SEG", "VRAM_SEG", "BLK_SEG", "OBJ_SEG", "FILE_SEG"};

}  // namespace

void Column::add(std::size_t rows, std::uint64_t number) {
  if (rows == 0) *this = Column(number);
  if (isSame(number)) return;
  if (each_.empty()) each_.assign(rows, same_);
  each_.push_back(number);
}

void Column::set(std::size_t row, std::size_t rows, std::uint64_t number) {
  if ((*this)[row] == number) return;
  if (each_.empty()) each_.assign(rows, same_);
  each_[row] = number;
}

void Column::remove(std::size_t row) {
  if (!each_.empty()) each_.erase(each_.begin() + static_cast<std::ptrdiff_t>(row));
}

void Rows::addOther(std::uint64_t bytes, std::uint64_t device) {
  bytes_.add(addresses_.size(), bytes);
  devices_.add(addresses_.size(), device);
}

std::vector<Extent> Rows::extents() const {
  std::vector<Extent> out(addresses_.size());
  for (std::size_t row = 0; row < out.size(); ++row) out[row] = extent(row);
  return out;
}

void Rows::set(std::size_t row, const Rows& other, std::size_t from) {
  devices_.set(row, count(), other.devices_[from]);
  if (ofRuns()) {
    runs_[row] = other.runs_[from];
  } else {
    bytes_.set(row, count(), other.bytes_[from]);
    addresses_[row] = other.addresses_[from];
  }
}

void Rows::remove(std::size_t row) {
  const auto at = static_cast<std::ptrdiff_t>(row);
  devices_.remove(row);
  if (ofRuns()) {
    runs_.erase(runs_.begin() + at);
  } else {
    bytes_.remove(row);
    addresses_.erase(addresses_.begin() + at);
  }
}

void Rows::resize(std::size_t rows) {
  while (count() > rows) remove(count() - 1);
  while (count() < rows) add(Extent{}, 0);
}

bool operator==(const Rows& one, const Rows& other) {
  if (one.count() != other.count() || one.ofRuns() != other.ofRuns()) return false;
  for (std::size_t row = 0; row < one.count(); ++row)
    if (one.devices_[row] != other.devices_[row] || one.run(row) != other.run(row)) return false;
  return true;
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
