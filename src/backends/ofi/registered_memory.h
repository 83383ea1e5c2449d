// Memory that is registered with libfabric, and the keys it is reached by. Threads: under
// the agent's lock.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <string>
#include <utility>

#include "backends/ofi/library.h"
#include "move/endpoint.h"

namespace viaduct::ofi {

using base::Bytes;

using move::MemoryRange;

// How often a number is drawn that somebody else already has.
inline constexpr int kKeyTries = 4;
// A key of ours, which nobody guesses: with some providers it is all that keeps strangers out.
Result<std::uint64_t> drawnKey(std::size_t key_bytes);

// Registers it and gives fi_mr_reg's own status: -FI_ENOKEY asks for another key.
int registerWith(fid_domain& domain, const MemoryRange& range, std::uint64_t key,
                 Fid<fid_mr>& region);
// What is said of a call that has failed for this memory.
Error cannotRegister(std::string call, int status, const MemoryRange& range,
                     const std::string& device);

// What peers reach through one rail. How it is registered, only those know who derive from it.
class RegisteredMemory : public move::Registration {
 public:
  // For requests that move it at our own side; null: they need none.
  void* descriptor() const { return descriptor_; }

 protected:
  RegisteredMemory(Bytes key, void* descriptor)
      : Registration(std::move(key)), descriptor_(descriptor) {}

 private:
  void* const descriptor_;
};

// Once, with the domain of all endpoints.
class DomainMemory final : public RegisteredMemory {
 public:
  DomainMemory(Bytes key, Fid<fid_mr> region)
      : RegisteredMemory(std::move(key), fi_mr_desc(region.get())), region_(std::move(region)) {}

 private:
  Fid<fid_mr> region_;
};

}  // namespace viaduct::ofi
