// The files of one device. Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "measure/workload/storage.h"

namespace viaduct::measure {

class StoredFiles final : public Storage {
 public:
  static Result<std::unique_ptr<Storage>> make(Agent& agent, const Peer& self, const Spec& spec,
                                               const DeviceBytes& bytes, std::uint32_t number,
                                               Buffer copy);

  bool isGiven() const override { return given_; }
  Status begin(const Workload& row) override;
  Result<Blocks> blocks(const StoredSet& set) override;
  Status store(const StoredSet& set) override;
  Status load(const StoredSet& set) override;
  Status settle() override;

 private:
  struct File {
    base::Fd fd;
    Pin pin;
    std::string name;  // for errors
  };
  // The place of a block: `offset` bytes from the start of `file`.
  struct Place {
    const File& file;
    std::uint64_t offset = 0;
  };
  StoredFiles(const Spec& spec, std::uint64_t part_bytes, Buffer copy)
      : Storage(std::move(copy)), spec_(spec), part_bytes_(part_bytes) {}
  Place placeOf(std::uint32_t part, std::uint64_t block) const;
  // Calls `visit` with each block of the set: its place, and its bytes in the copy.
  template <class Visit>
  Status each(const StoredSet& set, Visit visit);

  const Spec& spec_;
  const std::uint64_t part_bytes_;  // each stream's part of each file
  std::vector<File> files_;
  bool given_ = false;
  Workload row_;
};

}  // namespace viaduct::measure
