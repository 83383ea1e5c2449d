// The memory of one member at the ends of its flows. Writes the contents before each part of a
// round, and checks them afterwards. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "measure/workload/buffer.h"
#include "measure/workload/chunks.h"
#include "measure/workload/pipeline_contents.h"
#include "measure/workload/pipeline_routes.h"

namespace viaduct::measure::pipeline {

class Memories {
 public:
  // `kind` is the kind of host memory for ends that hold all bytes. The settings name the library
  // of the GPU's driver.
  Memories(Settings settings, const Chunking& chunks, Buffer::Kind kind)
      : settings_(std::move(settings)), chunks_(chunks), kind_(std::move(kind)) {}

  // Allocates the memory of an end, for transfers of this size. Ends with equal labels share it.
  Status make(Agent& agent, const End& end, std::uint64_t bytes);

  // fill() and clear() do nothing if the end is storage, or memory of another member.
  Status fill(const End& end, const Expected& contents);
  Status clear(const End& end);
  // Returns a description of the first wrong bytes, or nothing. In a ring, checks only the last
  // chunks, because earlier ones are overwritten.
  Result<Wrong> mismatch(const End& end, const Expected& contents);

 private:
  Result<Buffer::Kind> kindOf(const End& end) const;
  Buffer* find(const End& end);

  const Settings settings_;
  const Chunking chunks_;
  const Buffer::Kind kind_;
  std::uint64_t bytes_ = 0;                 // of a transfer
  std::map<std::string, Buffer> all_ = {};  // by label
};

}  // namespace viaduct::measure::pipeline
