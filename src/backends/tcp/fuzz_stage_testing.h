// The end that the frame fuzzer and the mutation test send bytes to. It has pinned memory, and a
// write and a read in flight. Threads: one at a time.
#pragma once

#include <cstring>
#include <string_view>
#include <vector>

#include "backends/tcp/half_testing.h"

namespace viaduct::tcp {

class FuzzStage {
 public:
  static constexpr std::size_t kBytes = 4096;

  FuzzStage() : memory_(3 * kBytes), guard_(memory_.size(), std::byte{0x5a}) {
    memory_ = guard_;
    // Only the middle third is pinned.
    pinned_.pins.add(0, at(kBytes), kBytes);
    pinned_.remote.add(0, 1);
    ops_ = {{.local = at(kBytes), .remote = 1, .bytes = 100},
            {.local = at(kBytes + 200), .remote = 200, .bytes = 64}};
    write_ = &pinned_.post(OpKind::kWrite, ops_);
    read_ = &pinned_.post(OpKind::kRead, ops_);
    sent_ = pinned_.take(kBytes);
  }

  std::string_view give(std::span<const std::byte> bytes) { return pinned_.give(bytes); }
  std::vector<std::byte> take() { return pinned_.take(std::size_t{1} << 20U); }
  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory_.data()) + offset;
  }
  std::span<const std::byte> sent() const { return sent_; }
  const move::Job& write() const { return *write_; }
  const move::Job& read() const { return *read_; }

  // Whether no byte outside the pin has changed.
  bool intact() const {
    const auto same = [&](std::size_t from, std::size_t to) {
      return std::memcmp(memory_.data() + from, guard_.data() + from, to - from) == 0;
    };
    return same(0, kBytes) && same(2 * kBytes, 3 * kBytes);
  }

 private:
  std::vector<std::byte> memory_, guard_;
  std::vector<core::Op> ops_;
  Half pinned_;
  move::Job* write_ = nullptr;
  move::Job* read_ = nullptr;
  std::vector<std::byte> sent_;
};

}  // namespace viaduct::tcp
