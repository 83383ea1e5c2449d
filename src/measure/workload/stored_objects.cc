#include "measure/workload/stored_objects.h"

#include <fmt/format.h>

#include <iterator>

namespace viaduct::measure {
namespace {

constexpr std::size_t kMostObjects = 60'000;  // an agent has at most 65,536 pins

Result<Blocks> blocksOf(const std::vector<Pin>& pins) {
  std::vector<Extent> extents;
  extents.reserve(pins.size());
  for (const Pin& pin : pins) extents.push_back({pin.info().address, pin.size()});
  return Blocks::list(extents);
}

}  // namespace

Result<std::unique_ptr<Storage>> StoredObjects::make(Agent& agent, const Peer& self,
                                                     const Spec& spec, std::uint32_t number,
                                                     Buffer copy, const std::string& copy_label) {
  VIADUCT_CHECK(self.waitPin(copy_label, kAnnounced));
  const auto now = Clock::now().time_since_epoch().count();
  std::unique_ptr<StoredObjects> out(new StoredObjects(
      agent, self,
      fmt::format("s3://{}/viaduct-bench/{}-{}/{}", spec.storage.place, agent.name(), now, number),
      std::move(copy)));
  VIADUCT_CHECK(out->begin({.op = OpKind::kRead, .block_bytes = 1}));
  VIADUCT_CHECK(out->store({}));
  return std::unique_ptr<Storage>(std::move(out));
}

Status StoredObjects::begin(const Workload& row) {
  row_ = row;
  ++rows_;
  blocks_.clear();
  return Ok{};
}

std::string StoredObjects::urlOf(const StoredSet& set, std::uint32_t k) const {
  return fmt::format("{}/{}-{}-{}", prefix_, rows_, set.part, set.first + k);
}

Result<std::vector<Pin>> StoredObjects::pin(const StoredSet& set, const FileOptions& options,
                                            bool announced) {
  std::vector<Pin> out;
  out.reserve(row_.batch);
  for (std::uint32_t k = 0; k < row_.batch; ++k) {
    const std::string label = announced ? fmt::format("{}#{}", prefix_, labels_++) : "";
    VIADUCT_TRY(Pin pin, agent_.pin(Segment::object(urlOf(set, k), options), label));
    if (announced) VIADUCT_CHECK(self_.waitPin(label, kAnnounced));
    out.push_back(std::move(pin));
  }
  return out;
}

Status StoredObjects::keep(std::vector<Pin> pins) {
  if (kept_.size() + pins.size() > kMostObjects)
    return Error{.code = Code::kExhausted,
                 .operation = "--backend",
                 .detail = fmt::format("the rows need more than {} objects", kMostObjects),
                 .remedy = "use fewer rows, a smaller batch or a smaller --working_set"};
  std::move(pins.begin(), pins.end(), std::back_inserter(kept_));
  return Ok{};
}

Result<Blocks> StoredObjects::blocks(const StoredSet& set) {
  const std::pair key{set.part, set.first};
  if (const auto known = blocks_.find(key); known != blocks_.end()) return known->second;
  const bool writes = row_.op == OpKind::kWrite;
  const FileOptions fresh{.bytes = row_.block_bytes, .create = true, .temporary = true};
  VIADUCT_TRY(std::vector<Pin> pins, pin(set, writes ? fresh : FileOptions{}, true));
  VIADUCT_TRY(Blocks blocks, blocksOf(pins));
  VIADUCT_CHECK(keep(std::move(pins)));
  blocks_.emplace(key, blocks);
  return blocks;
}

// Makes the objects of a set before a row of reads. A row of writes makes its objects itself.
Status StoredObjects::store(const StoredSet& set) {
  if (row_.op == OpKind::kWrite) return Ok{};
  const FileOptions fresh{.bytes = row_.block_bytes, .create = true, .temporary = true};
  VIADUCT_TRY(std::vector<Pin> pins, pin(set, fresh, false));
  VIADUCT_CHECK(move(OpKind::kRead, set, pins));
  return keep(std::move(pins));
}

Status StoredObjects::load(const StoredSet& set) {
  VIADUCT_TRY(const std::vector<Pin> pins, pin(set, {}, false));
  return move(OpKind::kWrite, set, pins);
}

Status StoredObjects::move(OpKind op, const StoredSet& set, const std::vector<Pin>& objects) {
  VIADUCT_TRY(Blocks local, blocksOf(objects));
  VIADUCT_TRY(Blocks copy, Blocks::strided({.base = copy_.address() + set.at,
                                            .bytes = row_.block_bytes,
                                            .count = row_.batch}));
  VIADUCT_TRY(Transfer transfer,
              agent_.plan(op, self_, {.blocks = std::move(local)}, {.blocks = std::move(copy)}));
  VIADUCT_CHECK(transfer.post());
  return transfer.wait();
}

}  // namespace viaduct::measure
