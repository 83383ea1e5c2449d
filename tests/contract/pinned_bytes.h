// The bytes of pinned memory, as a test fills and reads them: host memory in place, and memory of a
// GPU by copies of the driver. Threads: any.
#pragma once

#include <viaduct/pin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/memory.h"
#include "support/bytes.h"

namespace viaduct::testing {

// A part of pinned memory; by default all of it.
struct Part {
  std::uint64_t offset = 0, bytes = std::dynamic_extent;
};

// Bytes to compare: a view, or a copy.
class Contents {
 public:
  explicit Contents(std::span<const std::byte> view) : view_(view) {}
  explicit Contents(std::vector<std::byte> copy) : copy_(std::move(copy)), view_(copy_) {}
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  std::span<const std::byte> bytes() const { return view_; }

 private:
  const std::vector<std::byte> copy_;
  const std::span<const std::byte> view_;
};

class PinnedBytes {
 public:
  // `driver`: the library that copies memory of GPU 0; empty: all memory is the host's.
  static Result<PinnedBytes> open(const std::string& driver) {
    if (driver.empty()) return PinnedBytes(nullptr);
    // Kept until the process ends, because NVIDIA's driver takes long to make it again.
    static auto& kept = *new std::map<std::string, std::shared_ptr<const cuda::Context>>();
    auto& context = kept[driver];
    if (!context) {
      VIADUCT_TRY(const auto* loaded, cuda::driver(driver));
      VIADUCT_TRY(context, cuda::Context::retain(*loaded, 0));
    }
    return PinnedBytes(context);
  }

  Contents of(const Pin& pin, Part part = {}) const {
    if (pin.info().kind == MemoryKind::kHost)
      return Contents(pin.bytes().subspan(part.offset, part.bytes));
    std::vector<std::byte> copy(length(pin, part));
    check(cuda::copyToHost(*gpu_, copy, pin.info().address + part.offset));
    return Contents(std::move(copy));
  }

  // Calls `write` with the bytes to be written.
  template <class Write>
  void change(const Pin& pin, Part part, const Write& write) const {
    if (pin.info().kind == MemoryKind::kHost)
      return write(pin.bytes().subspan(part.offset, part.bytes));
    std::vector<std::byte> bytes(length(pin, part));
    write(std::span(bytes));
    check(cuda::copyToDevice(*gpu_, pin.info().address + part.offset, bytes));
  }

 private:
  explicit PinnedBytes(std::shared_ptr<const cuda::Context> gpu) : gpu_(std::move(gpu)) {}
  static std::uint64_t length(const Pin& pin, Part part) {
    return std::min<std::uint64_t>(part.bytes, pin.size() - part.offset);
  }
  static void check(const Status& done) { EXPECT_TRUE(done) << done.error().text(); }

  std::shared_ptr<const cuda::Context> gpu_;
};

}  // namespace viaduct::testing
