// The contents of the pools that a KV row moves. Each entry, which is one head of one token, has
// words of its own. The addresses come from the fields of the two layouts and not from KvReshard,
// so a piece that a plan moves to a wrong place has wrong words. Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/workload/kv_point.h"
#include "measure/workload/pattern.h"

namespace viaduct::measure {

class KvContents {
 public:
  KvContents(const KvPoint& point, std::uint64_t seed);

  // Writes to each page of the blocks that the set uses.
  void touch(KvSide side, std::span<std::byte> pool, std::uint64_t set) const;
  void fill(std::span<std::byte> pool, std::uint64_t epoch, std::uint64_t set) const;
  // Checks the entries of a set at the destination: all words, or the first, the last and one
  // random word of each page. Returns a description of the first wrong bytes, or nothing.
  std::optional<std::string> verify(std::span<const std::byte> pool, std::uint64_t epoch,
                                    std::uint64_t set, bool all) const;
  std::uint64_t checkedWords() const { return checked_; }

 private:
  // The pages of one tensor of one layer, at one end.
  struct Place {
    std::size_t group = 0;
    std::uint32_t layer = 0, tensor = 0;
    std::uint64_t at = 0, stride = 0;  // of block b's page: at + b * stride
    std::uint64_t page_bytes = 0, entry_bytes = 0;
    std::uint64_t block_tokens = 0, block_entries = 0;
    std::uint32_t first_head = 0, heads = 0;  // of the rank
    std::uint64_t all_heads = 0;
    std::uint64_t first_number = 0;    // of the request's entries
    std::uint64_t begin = 0, end = 0;  // the entries of the request's tokens that are moved
  };
  // A page of a block, and the range of its entries and heads that are moved.
  struct Page {
    const Place& place;
    std::uint64_t at = 0;                        // offset in the pool
    std::uint64_t first_entry = 0;               // of the page, in the request
    std::uint64_t begin = 0, end = 0;            // entries in the page
    std::uint32_t head_begin = 0, head_end = 0;  // heads in the page
  };
  std::vector<Place> placesOf(KvSide side) const;
  void numberEntries();
  template <class F>
  bool eachPage(KvSide side, std::uint64_t set, F visit) const;
  std::uint64_t offsetOf(KvSide side, const Page& page, std::uint64_t entry,
                         std::uint32_t head) const;
  std::uint64_t numberOf(std::uint64_t request, const Page& page, std::uint64_t entry,
                         std::uint32_t head) const;
  Pattern pattern(std::uint64_t epoch) const;
  std::optional<std::string> verifyBulk(std::span<const std::byte> pool, const Pattern& now,
                                        std::uint64_t set, bool all) const;
  std::optional<std::string> verifyPage(std::span<const std::byte> pool, const Pattern& now,
                                        std::uint64_t request, const Page& page, bool all) const;
  std::optional<std::string> wrongWord(std::span<const std::byte> memory, const Pattern& now,
                                       std::uint64_t number, std::uint64_t offset) const;

  const KvPoint point_;
  const std::uint64_t seed_;
  std::vector<KvRequestBlocks> tables_;
  std::vector<Place> source_, destination_;
  std::uint64_t request_entries_ = 0, most_entry_bytes_ = 1;
  mutable std::uint64_t checked_ = 0;
};

}  // namespace viaduct::measure
