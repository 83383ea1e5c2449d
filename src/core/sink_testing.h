// Slices and their sinks, for tests that read completions by themselves.
#pragma once

#include <array>
#include <cstdint>

#include "core/op.h"

namespace viaduct::core::testing {

class NoSink final : public Sink {
 public:
  void moved(const Moved& /*moved*/) override {}
  void failed(Failed /*failed*/) override {}
  void staged(Staged /*staged*/) override {}
};

// The sink of the slice with this number. Numbers that differ by 4096 have one sink.
inline Sink& sinkOf(std::uint64_t number) {
  static std::array<NoSink, 4096> sinks;
  return sinks[number % sinks.size()];
}
inline SliceOf sliceOf(std::uint64_t number) {
  return {&sinkOf(number), static_cast<std::uint32_t>(number)};
}

}  // namespace viaduct::core::testing
