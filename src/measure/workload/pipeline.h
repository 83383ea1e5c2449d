// The pipeline that `viaduct bench --pipeline` measures: its places (memory and storage), and the
// stages between them.
// Threads: pure functions and plain values.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/workload/chunks.h"

namespace viaduct::measure::pipeline {

// A file or an object at one end of the pipeline.
struct Storage {
  MemoryKind kind = MemoryKind::kFile;
  std::string text = {};  // as the user wrote it: "file:/a"
  std::string path = {};  // the file's path, or the object's URL
  friend bool operator==(const Storage&, const Storage&) = default;
};

// Memory or storage that the bytes pass.
struct Place {
  enum class Kind : std::uint8_t { kHost, kGpu, kStorage };
  Kind kind = Kind::kHost;
  std::string text = {};   // as the user wrote it: "host", "cuda0", "file:/a"
  std::uint32_t gpu = 0;   // the number of a GPU
  Storage storage = {};    // of kStorage
  std::uint32_t rank = 0;  // of the process to which the place belongs
  friend bool operator==(const Place&, const Place&) = default;
};

// The name of the stage between two processes.
inline constexpr auto kNet = "net";

// The bytes that a pipeline moves, and the files at its ends.
struct StorageOptions {
  std::uint64_t bytes = 0;          // of one transfer; 0: 128 MiB, or all of a smaller source
  std::uint64_t create_source = 0;  // the size of a source file that the benchmark makes; 0: none
  bool overwrite = false;           // an existing destination may be overwritten
  std::uint64_t seed = 1;           // of the contents of a made source
  Chunking chunks = {};
  friend bool operator==(const StorageOptions&, const StorageOptions&) = default;
};

// The labels of pinned storage.
inline constexpr auto kSourceLabel = "pipeline source";
inline constexpr auto kDestinationLabel = "pipeline destination";

struct Pipeline {
  std::string text = {};                 // as the user wrote it
  std::vector<Place> places = {};        // two or more, in order
  std::vector<std::string> stages = {};  // names: stage i moves bytes from place i to place i + 1

  // Return the storage at the pipeline's start or end, or null if that end is memory.
  const Storage* source() const { return storageAt(places.front()); }
  const Storage* destination() const { return storageAt(places.back()); }
  std::uint32_t processes() const { return places.back().rank + 1; }
  bool hasNet() const { return processes() == 2; }
  bool hasGpu() const;
  std::string routeOf(std::size_t stage) const;  // "file:/a -> host"

  friend bool operator==(const Pipeline&, const Pipeline&) = default;

 private:
  static const Storage* storageAt(const Place& place) {
    return place.kind == Place::Kind::kStorage ? &place.storage : nullptr;
  }
};

// Reads a list such as "file:/a,cuda0,net,cuda0,s3://bucket/key". An error names the wrong entry,
// its position and what is allowed there.
Result<Pipeline> parsePipeline(std::string_view text);

}  // namespace viaduct::measure::pipeline
