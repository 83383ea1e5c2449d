#include "measure/workload/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kTouchedPage = 4096;
constexpr std::uint64_t kStretch = std::uint64_t{64} << 10U;  // a sample has one word of each
constexpr std::uint64_t kSummed = 4096;                       // a sampled sum has one word of each
// One copy between a GPU and its mirror is faster than a copy for each cell. This does not hold if
// less than 1 / kSparse of the copied bytes belongs to cells.
constexpr std::uint64_t kSparse = 4;

// Calls `visit(row, column, memory, number)` for each cell, until it returns a wrong cell. Cells of
// `join` bytes that follow each other in memory and in numbers are visited as one long cell. A long
// cell is faster to fill and to check.
template <class Visit>
std::optional<WrongCell> eachCell(const Cells& cells, std::uint64_t join, Visit visit) {
  CellStep rows = cells.rows, columns = cells.columns;
  std::uint64_t bytes = cells.cellBytes();
  if (bytes == join && bytes % kWordBytes == 0 &&
      (columns.count == 1 || (columns.bytes == bytes && columns.numbers == 1))) {
    bytes *= std::exchange(columns.count, 1);
    if (rows.bytes == bytes && rows.numbers == cells.columns.count)
      bytes *= std::exchange(rows.count, 1);
  }
  for (std::uint64_t row = 0; row < rows.count; ++row)
    for (std::uint64_t column = 0; column < columns.count; ++column)
      if (auto wrong = visit(row, column,
                             cells.memory.subspan(row * rows.bytes + column * columns.bytes, bytes),
                             cells.number + row * rows.numbers + column * columns.numbers))
        return wrong;
  return std::nullopt;
}

std::optional<WrongCell> wrongAt(std::uint64_t row, std::uint64_t column,
                                 const std::optional<Mismatch>& found) {
  if (!found) return std::nullopt;
  return WrongCell{row, column, found->offset, found->text};
}

// Calls `copy` for parts of the mirror that together contain all cells.
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

// Returns the first byte that differs from `original`, the user's bytes. `original` may be longer
// than `found`.
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
  list([&](const Cells& cells) {
    return eachCell(cells, pattern_.block_bytes,
                    [&, now = at(cells.epoch)](auto, auto, auto memory, std::uint64_t number) {
                      now.fill(memory, number, cells.offset);
                      return std::optional<WrongCell>();
                    });
  });
  return push(list, gpu);
}

Status Contents::clear(const CellList& list, const Mirror* gpu) {
  list([](const Cells& cells) {
    return eachCell(cells, 0, [](auto, auto, auto memory, auto) {
      std::memset(memory.data(), 0, memory.size());
      return std::optional<WrongCell>();
    });
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
  const bool all = how == Verified::kFull;
  list([&](const Cells& cells) {
    return eachCell(cells, all ? pattern_.block_bytes : 0,
                    [&](auto, auto, auto memory, std::uint64_t number) {
                      if (all)
                        pattern_.add(out, memory, key, number, cells.offset);
                      else
                        addSample(out, memory, key, number, cells.offset);
                      return std::optional<WrongCell>();
                    });
  });
  return out;
}

void Contents::addSample(WordSum& sum, std::span<const std::byte> memory, std::uint64_t key,
                         std::uint64_t number, std::uint64_t offset) const {
  for (std::uint64_t at = 0; at < memory.size(); at += kSummed) {
    const std::uint64_t bytes = std::min<std::uint64_t>(kSummed, memory.size() - at);
    const std::uint64_t words = (bytes + kWordBytes - 1) / kWordBytes;
    const std::uint64_t dice = base::splitmix(key + number * base::kSplitmixStep + at);
    const std::uint64_t skipped = ((dice >> 32U) * words >> 32U) * kWordBytes;
    pattern_.add(sum, memory.subspan(at + skipped, std::min(kWordBytes, bytes - skipped)), key,
                 number, offset + at + skipped);
  }
}

std::optional<WrongCell> Contents::checkAll(const Cells& cells) const {
  const auto all = [&](std::uint64_t join) {
    return eachCell(cells, join,
                    [&, now = at(cells.epoch)](std::uint64_t row, std::uint64_t column, auto memory,
                                               std::uint64_t number) {
                      return wrongAt(row, column, check(cells, now, number, 0, memory));
                    });
  };
  auto wrong = all(pattern_.block_bytes);
  if (!wrong) return std::nullopt;
  auto cell = all(0);  // finds nothing if the bytes have arrived in between
  return cell ? cell : wrong;
}

std::optional<WrongCell> Contents::checkSample(const Cells& cells) const {
  const Pattern now = at(cells.epoch);
  const std::uint64_t bytes = cells.cellBytes(), all = cells.bytes();
  const CellStep &rows = cells.rows, &columns = cells.columns;
  const auto word_at = [&](std::uint64_t row, std::uint64_t column, std::uint64_t byte) {
    const std::uint64_t offset = byte / kWordBytes * kWordBytes;
    const auto word = cells.memory.subspan(row * rows.bytes + column * columns.bytes + offset,
                                           std::min(kWordBytes, bytes - offset));
    const std::uint64_t number = cells.number + row * rows.numbers + column * columns.numbers;
    return wrongAt(row, column, check(cells, now, number, offset, word));
  };
  base::Random random(pattern_.seed ^ cells.epoch << 32U ^ cells.number);
  auto wrong = word_at(0, 0, 0);
  // Checks a random word of each kStretch bytes of all cells, as if the cells followed each other.
  for (std::uint64_t begin = 0; begin < all && !wrong; begin += kStretch) {
    const std::uint64_t byte = begin + random.below(std::min(kStretch, all - begin));
    const std::uint64_t cell = byte / bytes;
    wrong = word_at(cell / columns.count, cell % columns.count, byte % bytes);
  }
  return wrong ? wrong : word_at(rows.count - 1, columns.count - 1, bytes - 1);
}

// Checks bytes of a cell from `offset` on.
std::optional<Mismatch> Contents::check(const Cells& cells, const Pattern& now,
                                        std::uint64_t number, std::uint64_t offset,
                                        std::span<const std::byte> memory) const {
  checked_ += (memory.size() + kWordBytes - 1) / kWordBytes;
  if (cells.digest != nullptr)
    return digestOf(memory) == *cells.digest
               ? std::nullopt
               : std::optional(Mismatch{.text = "the source has other bytes"});
  auto wrong = cells.original.empty() ? now.verify(memory, number, cells.offset + offset)
                                      : differenceOf(memory, cells.original.subspan(offset));
  if (wrong) wrong->offset += cells.offset + offset;
  return wrong;
}

}  // namespace viaduct::measure
