// A registered segment: peers reach it until its Pin is gone. Threads: one at a time per Pin.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <memory>
#include <span>

namespace viaduct {

namespace agent {
class PinImpl;
}

class Pin {
 public:
  explicit Pin(std::unique_ptr<agent::PinImpl> impl);
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  Pin(Pin&&) noexcept;
  Pin& operator=(Pin&&) noexcept;
  ~Pin();  // release() where nobody has called it, its failure logged

  const PinInfo& info() const;
  Segment segment() const;
  std::byte* data() const;  // host memory only
  std::uint64_t size() const { return info().bytes; }
  std::span<std::byte> bytes() const { return {data(), size()}; }

  // Withdraws the registration. On return no peer reaches the memory and no transfer of ours uses
  // it (those still running end with an error); it may be freed. kPeerLost, after Settings::grace:
  // the peer that the error names was stopped in the middle of a one-sided copy. It may still
  // change the memory until its Peer::settled() is true, see docs/failure.md. A second call
  // gives the outcome of the first.
  Status release();

 private:
  std::unique_ptr<agent::PinImpl> impl_;
};

}  // namespace viaduct
