// Registers a segment, so that peers can read and write it until release(). The destructor calls
// release(). release() says when the memory may be freed. Threads: one at a time per Pin.
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
  // Calls release() if nobody has, and logs its failure. Never frees host memory of allocate() that
  // a peer or a GPU may still change.
  ~Pin();

  const PinInfo& info() const;
  Segment segment() const;
  std::byte* data() const;  // host memory only
  std::uint64_t size() const { return info().bytes; }
  std::span<std::byte> bytes() const { return {data(), size()}; }

  // Withdraws the registration. On return the memory may be freed: no peer reaches it and no
  // transfer of ours uses it. Running transfers end with an error. kPeerLost, after
  // Settings::grace: the peer in the error was stopped in the middle of a one-sided copy, or a GPU
  // hangs here. The memory may still change until Peer::settled() is true, of that peer or of
  // Agent::self() (docs/failure.md). A second call returns the first result.
  Status release();

 private:
  std::unique_ptr<agent::PinImpl> impl_;
};

}  // namespace viaduct
