// Memory of a rail whose provider registers it for each endpoint (FI_MR_ENDPOINT). Each endpoint
// has its own domain, so that one key is free in all of them, and peers need only one. Threads:
// under the agent's lock.
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/ofi/registered_memory.h"

namespace viaduct::ofi {

class EndpointRegions;

// All memory of the rail, and the endpoints with which it is registered. A RailRegions outlives its
// memory and its endpoints.
class RailRegions {
 public:
  // `key_bytes`: length of keys. `by_address`: requests use addresses; else offsets.
  RailRegions(std::string device, std::size_t key_bytes, bool by_address)
      : device_(std::move(device)), key_bytes_(key_bytes), by_address_(by_address) {}

  // Registers the memory with every open endpoint, and with later ones. On failure no endpoint
  // keeps it.
  Result<std::unique_ptr<RegisteredMemory>> add(const MemoryRange& range);
  // Registers all memory with a new endpoint, which is enabled and alone in its domain.
  Result<std::unique_ptr<EndpointRegions>> open(fid_domain& domain, fid_ep& endpoint);

 private:
  friend class EndpointRegions;
  class EachEndpoint;

  Status addEverywhere(std::uint64_t key, const MemoryRange& range);
  void remove(std::uint64_t key);

  const std::string device_;
  const std::size_t key_bytes_;
  const bool by_address_;
  std::unordered_map<std::uint64_t, MemoryRange> memory_;
  std::vector<EndpointRegions*> open_;
};

// The registrations with one endpoint. Destroy it before the endpoint.
class EndpointRegions {
 public:
  EndpointRegions(RailRegions& all, fid_domain& domain, fid_ep& endpoint);
  ~EndpointRegions();
  EndpointRegions(const EndpointRegions&) = delete;
  EndpointRegions& operator=(const EndpointRegions&) = delete;

  Status add(std::uint64_t key, const MemoryRange& range);
  void remove(std::uint64_t key) { regions_.erase(key); }

 private:
  RailRegions& all_;
  fid_domain& domain_;
  fid_ep& endpoint_;
  std::unordered_map<std::uint64_t, Fid<fid_mr>> regions_;
};

}  // namespace viaduct::ofi
