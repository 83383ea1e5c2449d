// The KV cache of a request as parts of a parcel, one for each layer: docs/kv.md. The source
// publishes them and makes layer after layer ready, and the destination fetches them into its own
// blocks. Threads: plain values; const calls from any.
#pragma once

#include <viaduct/kv.h>
#include <viaduct/parcel.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace viaduct {

// A part has the caches of one layer at one rank of the source. Its bytes are the pages of the
// request: block after block in the order of the tokens, in a block cache after cache, in a cache K
// before V. Its component is the number of the layer. If caches of a layer lie in several groups,
// each group is a part of its own, and each one after the first adds kMaxKvLayers.
inline constexpr std::uint32_t kMaxKvLayers = 1U << 16U;

// The parts of this rank, layer after layer. The layout needs no places.
Result<std::vector<ParcelPart>> kvParts(const KvLayout& source);
// The parts of kvParts() with the pages of a request. `blocks` has the numbers of the request's
// blocks for each group, in the order of their tokens. Pages that lie side by side stay one block
// of the part.
Result<std::vector<PublishedPart>> kvPages(const KvLayout& source, std::span<const Indices> blocks);

// A plan between two layouts for each part. Made once, for all requests.
class KvLayers {
 public:
  // `source` needs no places. Fails as KvReshard::plan does.
  static Result<KvLayers> plan(const KvLayout& source, const KvLayout& destination);

  // The parts that move between these two ranks, layer after layer.
  const std::vector<ParcelPart>& parts() const { return parts_; }
  // The memory for each part, as KvReshard::select finds it. KvBlocks::source has the numbers of
  // blocks within the part, from 0, not those of the source's pool. A part of which nothing is
  // moved is left out.
  Result<std::vector<PartInto>> into(std::span<const KvBlocks> groups) const;

 private:
  struct One {
    std::size_t group = 0;
    KvReshard plan = {};
  };
  std::size_t groups_ = 0;
  std::vector<ParcelPart> parts_;
  std::vector<One> plans_;  // of each part
};

}  // namespace viaduct
