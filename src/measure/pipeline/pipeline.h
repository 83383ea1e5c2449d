// The pipeline that `viaduct bench --pipeline` measures: its memories, and the stages between them.
// Threads: pure functions and plain values.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"

namespace viaduct::measure::pipeline {

// A file or an object at one end of the pipeline.
struct Storage {
  MemoryKind kind = MemoryKind::kFile;
  std::string text = {};  // as the user wrote it: "file:/a"
  std::string path = {};  // the file's path, or the object's URL
  friend bool operator==(const Storage&, const Storage&) = default;
};

enum class StageKind : std::uint8_t {
  kLoad,   // from storage into host memory, at the first process
  kNet,    // from host memory of the first process into that of the second
  kStore,  // from host memory into storage, at the last process
};
inline constexpr base::Words<StageKind, 3> kStageKinds{
    {{"load", StageKind::kLoad}, {"net", StageKind::kNet}, {"store", StageKind::kStore}}};
constexpr const char* stageName(StageKind kind) { return base::wordOf(kStageKinds, kind); }

struct Pipeline {
  std::string text = {};                                 // as the user wrote it
  std::optional<Storage> source = {}, destination = {};  // nothing: host memory
  std::vector<StageKind> stages = {};                    // one or more, in order

  bool has(StageKind kind) const;
  std::uint32_t processes() const { return has(StageKind::kNet) ? 2 : 1; }
  std::string routeOf(StageKind kind) const;  // "file:/a -> host"
  bool needs(MemoryKind kind) const;          // whether one of its ends is of this kind
};

// Reads a list such as "file:/a,host,net,host,s3://bucket/key". An error names the wrong entry, its
// position and what is allowed there.
Result<Pipeline> parsePipeline(std::string_view text);

}  // namespace viaduct::measure::pipeline
