// The cells of the pools that a KV row moves. Each entry is a cell: one head of one token, or of
// KvTensor::entry_tokens tokens. The addresses come from the fields of the two layouts and not from
// KvReshard, so a piece that a plan moves to a wrong place has wrong words. Threads: plain values;
// const calls from any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "measure/workload/contents.h"
#include "measure/workload/kv_point.h"

namespace viaduct::measure {

// One tensor of one layer, at one end. Each block of the tensor's group has one page of the tensor.
struct KvTensor {
  std::size_t group = 0;
  std::uint32_t layer = 0, tensor = 0;
  std::uint64_t at = 0, stride = 0;  // the page of block b is at `at + b * stride`
  std::uint64_t page_bytes = 0, entry_bytes = 0, block_entries = 0;
  std::uint32_t entry_tokens = 1, all_heads = 1;  // all_heads: of the model

  std::span<std::byte> page(std::span<std::byte> pool, std::uint64_t block) const {
    return pool.subspan(at + block * stride, page_bytes);
  }
};
// Returns the tensors of all groups, in the order of KvGroup::places.
std::vector<KvTensor> tensorsOf(const KvLayout& layout);

class KvCells {
 public:
  explicit KvCells(const KvPoint& point);

  // The words of all cells, for this seed.
  Pattern pattern(std::uint64_t seed) const;
  // Lists the moved cells of a set, in the pool of this side.
  Wrong each(KvSide side, std::span<std::byte> pool, std::uint64_t epoch, std::uint64_t set,
             const CellVisit& visit) const;

 private:
  // A tensor, and the part of it that the rank has and moves.
  struct Part : KvTensor {
    std::uint64_t block_tokens = 0;
    std::uint32_t first_head = 0, heads = 0;
    std::uint64_t first_number = 0;    // the number of the request's first entry
    std::uint64_t begin = 0, end = 0;  // the entries of the request's tokens that are moved
  };
  std::vector<Part> partsOf(KvSide side) const;
  void numberEntries();
  Wrong eachPage(KvSide side, std::span<std::byte> pool, std::uint64_t epoch, std::uint64_t request,
                 std::size_t part, const CellVisit& visit) const;

  const KvPoint point_;
  std::vector<KvRequestBlocks> tables_;
  std::vector<Part> source_, destination_;
  std::uint64_t request_entries_ = 0, most_entry_bytes_ = 1;
};

}  // namespace viaduct::measure
