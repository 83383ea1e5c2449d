// Memory that is registered with libfabric, and its keys. Threads: under the agent's lock.
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

// How often to try another random key if one is in use.
inline constexpr int kKeyTries = 4;
// A random key. Some providers keep strangers out only by the secrecy of the key.
Result<std::uint64_t> drawnKey(std::size_t key_bytes);

// Registers the memory. Returns the status of fi_mr_reg: -FI_ENOKEY means that the key is in use.
int registerWith(fid_domain& domain, const MemoryRange& range, std::uint64_t key,
                 Fid<fid_mr>& region);
// The error of a call that failed for this memory.
Error cannotRegister(std::string call, int status, const MemoryRange& range,
                     const std::string& device);

// Memory that peers reach through one rail. Derived classes own the registration.
class RegisteredMemory : public move::Registration {
 public:
  // The descriptor for requests that use the memory locally; null if they need none.
  void* descriptor() const { return descriptor_; }

 protected:
  RegisteredMemory(Bytes key, void* descriptor)
      : Registration(std::move(key)), descriptor_(descriptor) {}

 private:
  void* const descriptor_;
};

// Memory that is registered once, with the domain of all endpoints.
class DomainMemory final : public RegisteredMemory {
 public:
  DomainMemory(Bytes key, Fid<fid_mr> region)
      : RegisteredMemory(std::move(key), fi_mr_desc(region.get())), region_(std::move(region)) {}

 private:
  Fid<fid_mr> region_;
};

}  // namespace viaduct::ofi
