// The bytes that memory must hold: words of a Pattern, or the user's bytes. Each kind of row lists
// the cells of its memory and names them. Filling and checking are the same for all kinds of rows.
// Threads: one at a time.
#pragma once

#include <viaduct/digest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "measure/result/row.h"
#include "measure/workload/mirror.h"
#include "measure/workload/pattern.h"

namespace viaduct::measure {

// The distance from one cell to the next.
struct CellStep {
  std::uint64_t count = 1;    // of cells
  std::uint64_t bytes = 0;    // in memory
  std::uint64_t numbers = 0;  // of the Pattern's blocks
};

// Cells of equal size, in rows and columns. Each cell has the words of one block of the Pattern. A
// block of a row is one cell. A page of a KV cache has one cell for each head of each token.
struct Cells {
  std::span<std::byte> memory = {};  // from the start of the first cell to the end of the last one
  std::uint64_t number = 0;          // of the first cell's block
  std::uint64_t epoch = 1;           // of the words
  std::uint64_t offset = 0;          // of each cell in its block; a multiple of eight
  CellStep rows = {}, columns = {};
  // If the contents are the user's, there is only one cell, and these are its bytes or their
  // digest. Checks then use these instead of the Pattern's words.
  std::span<const std::byte> original = {};
  const Digest* digest = nullptr;

  std::uint64_t cellBytes() const {
    return memory.size() - (rows.count - 1) * rows.bytes - (columns.count - 1) * columns.bytes;
  }
  std::uint64_t bytes() const { return rows.count * columns.count * cellBytes(); }
};

// The first wrong bytes of a cell.
struct WrongCell {
  std::uint64_t row = 0, column = 0;
  std::uint64_t offset = 0;  // in the block
  std::string text = {};     // a guess about the found bytes

  // "block 3 of set 2 is wrong from offset 64: zeros: no data arrived here"
  std::string named(std::string_view cell) const;
};

// A description of the first wrong bytes, or nothing.
using Wrong = std::optional<std::string>;

// A CellList calls a CellVisit for all cells of some contents, until the CellVisit returns a wrong
// cell. Then the CellList returns the description of the wrong cell, with its name.
using CellVisit = std::function<std::optional<WrongCell>(const Cells&)>;
using CellList = std::function<Wrong(const CellVisit&)>;

class Contents {
 public:
  // `pattern`'s epoch is not used, because each Cells has its own.
  explicit Contents(const Pattern& pattern) : pattern_(pattern) {}

  // Writes to each page of memory, so that the slow first access is over before the transfers.
  static void touch(const CellList& list);
  // If `gpu` is set, the cells are in this mirror. The calls then copy from and to the GPU's
  // memory. They fail only if its driver fails. Bytes between the cells may be copied too.
  Status fill(const CellList& list, const Mirror* gpu = nullptr) const;
  // Writes zeros, which are no words of any epoch.
  static Status clear(const CellList& list, const Mirror* gpu = nullptr);
  // Checks all words, or a sample: the first, the last, and a random word of each 64 KiB.
  Result<Wrong> verify(const CellList& list, Verified how, const Mirror* gpu = nullptr) const;
  // Adds up all words with their blocks and offsets, or only one word of each 4 KiB of each cell.
  // The key chooses these words, so both ends add up the same words.
  Result<WordSum> sum(const CellList& list, std::uint64_t key, Verified how,
                      const Mirror* gpu = nullptr) const;
  std::uint64_t checkedWords() const { return checked_; }

 private:
  Pattern at(std::uint64_t epoch) const;
  void addSample(WordSum& sum, std::span<const std::byte> memory, std::uint64_t key,
                 std::uint64_t number, std::uint64_t offset) const;
  std::optional<WrongCell> checkAll(const Cells& cells) const;
  std::optional<WrongCell> checkSample(const Cells& cells) const;
  std::optional<Mismatch> check(const Cells& cells, const Pattern& now, std::uint64_t number,
                                std::uint64_t offset, std::span<const std::byte> memory) const;

  Pattern pattern_;
  mutable std::uint64_t checked_ = 0;
};

}  // namespace viaduct::measure
