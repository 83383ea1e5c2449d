// The objects of one device, one for each block. Threads: one at a time.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "measure/workload/storage.h"

namespace viaduct::measure {

class StoredObjects final : public Storage {
 public:
  // Writes one small object first, so that a wrong endpoint, key or bucket fails here.
  static Result<std::unique_ptr<Storage>> make(Agent& agent, const Peer& self, const Spec& spec,
                                               std::uint32_t number, Buffer copy,
                                               const std::string& copy_label);

  Status begin(const Workload& row) override;
  Result<Blocks> blocks(const StoredSet& set) override;
  Status store(const StoredSet& set) override;
  Status load(const StoredSet& set) override;

 private:
  StoredObjects(Agent& agent, Peer self, std::string prefix, Buffer copy)
      : Storage(std::move(copy)),
        agent_(agent),
        self_(std::move(self)),
        prefix_(std::move(prefix)) {}
  std::string urlOf(const StoredSet& set, std::uint32_t k) const;
  // Pins the objects of a set. A new object is deleted once its pin is released.
  Result<std::vector<Pin>> pin(const StoredSet& set, const FileOptions& options, bool announced);
  // Moves the blocks of a set between the copy and the objects, which are the local side.
  Status move(OpKind op, const StoredSet& set, const std::vector<Pin>& objects);
  Status keep(std::vector<Pin> pins);

  Agent& agent_;
  const Peer self_;
  const std::string prefix_;  // of the URLs
  Workload row_;
  std::uint32_t rows_ = 0;  // number of rows that have begun
  std::uint64_t labels_ = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Blocks> blocks_;  // blocks of the row's sets
  std::vector<Pin> kept_;
};

}  // namespace viaduct::measure
