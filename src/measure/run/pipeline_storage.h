// Opens the files and objects at the ends of a pipeline. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/fd.h"
#include "measure/workload/chunks.h"
#include "measure/workload/pipeline.h"
#include "measure/workload/pipeline_contents.h"

namespace viaduct::measure::pipeline {

// The default size of a transfer. A smaller source is moved as a whole.
inline constexpr std::uint64_t kUsualBytes = std::uint64_t{128} << 20U;

// A pinned file or object. Files that the benchmark makes lose their names at once. So they vanish
// with the process, even if it is killed.
class PinnedStorage {
 public:
  // The epoch of the contents of a made source.
  static constexpr std::uint64_t kSourceEpoch = 1;

  static Result<PinnedStorage> source(Agent& agent, const Storage& storage,
                                      const StorageOptions& options);
  // Opens or makes the destination. `options.bytes` must not be 0.
  static Result<PinnedStorage> destination(Agent& agent, const Storage& storage,
                                           const StorageOptions& options);

  std::uint64_t bytes() const { return pin_.size(); }
  bool made() const { return made_; }
  const Storage& storage() const { return storage_; }
  // Returns a text that is equal for the same file on one host. Empty for objects.
  std::string identity() const;

  // Passes each chunk of the contents to `visit` until it returns a text.
  using Visit = std::function<Result<Wrong>(std::span<std::byte> chunk, std::uint64_t number)>;
  Result<Wrong> read(Agent& agent, const Chunking& chunks, const Visit& visit) const;

 private:
  PinnedStorage(Storage storage, base::Fd fd, bool made, Pin pin)
      : storage_(std::move(storage)), fd_(std::move(fd)), made_(made), pin_(std::move(pin)) {}

  Storage storage_;
  base::Fd fd_;  // of a file
  bool made_ = false;
  Pin pin_;
};

}  // namespace viaduct::measure::pipeline
