#include "measure/workload/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kTouchedPage = 4096;
constexpr std::uint64_t kStretch = std::uint64_t{64} << 10U;  // a sample has a word of each
constexpr std::uint64_t kSummed = 4096;                       // a sum of samples has a word of each
// One copy between a GPU and its mirror is faster than many, unless fewer than one byte in so many
// belongs to a cell.
constexpr std::uint64_t kSparse = 4;

std::uint64_t numberOf(const Cells& cells, std::uint64_t row, std::uint64_t column) {
  return cells.number + row * cells.rows.numbers + column * cells.columns.numbers;
}

std::span<std::byte> memoryOf(const Cells& cells, std::uint64_t row, std::uint64_t column) {
  return cells.memory.subspan(row * cells.rows.bytes + column * cells.columns.bytes,
                              cells.cellBytes());
}

// Calls `write(memory, cells, number)` for each cell.
template <class Write>
void eachCell(const CellList& list, Write write) {
  list([&](const Cells& cells) {
    for (std::uint64_t row = 0; row < cells.rows.count; ++row)
      for (std::uint64_t column = 0; column < cells.columns.count; ++column)
        write(memoryOf(cells, row, column), cells, numberOf(cells, row, column));
    return std::optional<WrongCell>();
  });
}

// Calls `copy` for parts of the mirror that have all cells.
template <class Copy>
Status copyCells(const CellList& list, Copy copy) {
  std::byte *begin = nullptr, *end = nullptr;
  std::uint64_t bytes = 0;
  list([&](const Cells& cells) {
    std::byte* const at = cells.memory.data();
    begin = begin == nullptr ? at : std::min(begin, at);
    end = std::max(end, at + cells.memory.size());
    bytes += cells.bytes();
    return std::optional<WrongCell>();
  });
  const std::span<std::byte> all(begin, end);
  if (all.size() <= kSparse * bytes) return all.empty() ? Status(Ok{}) : copy(all);
  Status done = Ok{};
  list([&](const Cells& cells) {
    done = copy(cells.memory);
    return done ? std::nullopt : std::optional(WrongCell());
  });
  return done;
}

Status push(const CellList& list, const Mirror* gpu) {
  if (gpu == nullptr) return Ok{};
  return copyCells(list, [&](std::span<std::byte> part) { return gpu->push(part); });
}

Status pull(const CellList& list, const Mirror* gpu) {
  if (gpu == nullptr) return Ok{};
  return copyCells(list, [&](std::span<std::byte> part) { return gpu->pull(part); });
}

// The first byte that differs from the user's. `original` may be longer than `found`.
std::optional<Mismatch> differenceOf(std::span<const std::byte> found,
                                     std::span<const std::byte> original) {
  const auto at = std::mismatch(found.begin(), found.end(), original.begin()).first;
  if (at == found.end()) return std::nullopt;
  return Mismatch{.offset = static_cast<std::uint64_t>(at - found.begin()),
                  .text = "the storage has other bytes there"};
}

}  // namespace

std::string WrongCell::named(std::string_view cell) const {
  return fmt::format("{} is wrong from offset {}: {}", cell, offset, text);
}

Pattern Contents::at(std::uint64_t epoch) const {
  Pattern out = pattern_;
  out.epoch = epoch % kEpochs;
  return out;
}

void Contents::touch(const CellList& list) {
  list([](const Cells& cells) {
    for (std::uint64_t at = 0; at < cells.memory.size(); at += kTouchedPage)
      cells.memory[at] = std::byte{0};
    return std::optional<WrongCell>();
  });
}

Status Contents::fill(const CellList& list, const Mirror* gpu) const {
  eachCell(list, [&](std::span<std::byte> memory, const Cells& cells, std::uint64_t number) {
    at(cells.epoch).fill(memory, number, cells.offset);
  });
  return push(list, gpu);
}

Status Contents::clear(const CellList& list, const Mirror* gpu) {
  eachCell(list, [](std::span<std::byte> memory, const Cells&, std::uint64_t) {
    std::memset(memory.data(), 0, memory.size());
  });
  return push(list, gpu);
}

Result<Wrong> Contents::verify(const CellList& list, Verified how, const Mirror* gpu) const {
  VIADUCT_CHECK(pull(list, gpu));
  return list([&](const Cells& cells) {
    return how == Verified::kFull ? checkAll(cells) : checkSample(cells);
  });
}

Result<WordSum> Contents::sum(const CellList& list, std::uint64_t key, Verified how,
                              const Mirror* gpu) const {
  VIADUCT_CHECK(pull(list, gpu));
  WordSum out;
  const auto add = [&](std::span<const std::byte> memory, std::uint64_t number,
                       std::uint64_t offset) { pattern_.add(out, memory, key, number, offset); };
  eachCell(list, [&](std::span<const std::byte> memory, const Cells& cells, std::uint64_t number) {
    if (how == Verified::kFull) return add(memory, number, cells.offset);
    for (std::uint64_t at = 0; at < memory.size(); at += kSummed) {
      const std::uint64_t bytes = std::min<std::uint64_t>(kSummed, memory.size() - at);
      const std::uint64_t words = (bytes + kWordBytes - 1) / kWordBytes;
      const std::uint64_t dice = base::splitmix(key + number * base::kSplitmixStep + at);
      const std::uint64_t offset = ((dice >> 32U) * words >> 32U) * kWordBytes;
      add(memory.subspan(at + offset, std::min(kWordBytes, bytes - offset)), number,
          cells.offset + at + offset);
    }
  });
  return out;
}

std::optional<WrongCell> Contents::checkAll(const Cells& cells) const {
  const std::uint64_t bytes = cells.cellBytes();
  for (std::uint64_t row = 0; row < cells.rows.count; ++row)
    for (std::uint64_t column = 0; column < cells.columns.count; ++column)
      if (auto wrong = check(cells, row, column, 0, bytes)) return wrong;
  return std::nullopt;
}

std::optional<WrongCell> Contents::checkSample(const Cells& cells) const {
  const std::uint64_t bytes = cells.cellBytes(), all = cells.bytes();
  // `place`: in the bytes of all cells, one after the other.
  const auto wordAt = [&](std::uint64_t place) {
    const std::uint64_t cell = place / bytes, offset = place % bytes / kWordBytes * kWordBytes;
    return check(cells, cell / cells.columns.count, cell % cells.columns.count, offset,
                 std::min(kWordBytes, bytes - offset));
  };
  base::Random random(pattern_.seed ^ cells.epoch << 32U ^ cells.number);
  auto wrong = wordAt(0);
  for (std::uint64_t at = 0; at < all && !wrong; at += kStretch)
    wrong = wordAt(at + random.below(std::min(kStretch, all - at)));
  return wrong ? wrong : wordAt(all - 1);
}

// Checks bytes of one cell, from `offset` on.
std::optional<WrongCell> Contents::check(const Cells& cells, std::uint64_t row,
                                         std::uint64_t column, std::uint64_t offset,
                                         std::uint64_t bytes) const {
  checked_ += (bytes + kWordBytes - 1) / kWordBytes;
  const auto memory = memoryOf(cells, row, column).subspan(offset, bytes);
  const std::uint64_t in_block = cells.offset + offset;
  if (cells.digest != nullptr) {
    if (digestOf(memory) == *cells.digest) return std::nullopt;
    return WrongCell{.text = "the source has other bytes"};
  }
  const auto wrong = cells.original.empty()
                         ? at(cells.epoch).verify(memory, numberOf(cells, row, column), in_block)
                         : differenceOf(memory, cells.original.subspan(offset));
  if (!wrong) return std::nullopt;
  return WrongCell{row, column, in_block + wrong->offset, wrong->text};
}

}  // namespace viaduct::measure
