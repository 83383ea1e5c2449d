#include "backends/ofi/endpoint_regions.h"

#include <utility>

#include "backends/ofi/remote_key.h"

namespace viaduct::ofi {

class RailRegions::EachEndpoint final : public RegisteredMemory {
 public:
  EachEndpoint(RailRegions& all, std::uint64_t key, const RemoteMemory& there)
      : RegisteredMemory(packed(there), nullptr), all_(all), key_(key) {}
  ~EachEndpoint() override { all_.remove(key_); }
  EachEndpoint(const EachEndpoint&) = delete;
  EachEndpoint& operator=(const EachEndpoint&) = delete;

 private:
  RailRegions& all_;
  const std::uint64_t key_;
};

Result<std::unique_ptr<RegisteredMemory>> RailRegions::add(const MemoryRange& range) {
  for (int i = 0; i < kKeyTries; ++i) {
    VIADUCT_TRY(const std::uint64_t key, drawnKey(key_bytes_));
    if (memory_.contains(key)) continue;
    VIADUCT_CHECK(addEverywhere(key, range));
    memory_.emplace(key, range);
    return std::unique_ptr<RegisteredMemory>(std::make_unique<EachEndpoint>(
        *this, key, RemoteMemory{.key = key, .base = by_address_ ? 0 : range.address}));
  }
  return cannotRegister("draw a key", -FI_ENOKEY, range, device_);
}

Status RailRegions::addEverywhere(std::uint64_t key, const MemoryRange& range) {
  for (EndpointRegions* const one : open_)
    if (auto added = one->add(key, range); !added) {
      remove(key);
      return added;
    }
  return Ok{};
}

void RailRegions::remove(std::uint64_t key) {
  memory_.erase(key);
  for (EndpointRegions* const one : open_) one->remove(key);
}

Result<std::unique_ptr<EndpointRegions>> RailRegions::open(fid_domain& domain, fid_ep& endpoint) {
  auto out = std::make_unique<EndpointRegions>(*this, domain, endpoint);
  for (const auto& [key, range] : memory_) VIADUCT_CHECK(out->add(key, range));
  return out;
}

EndpointRegions::EndpointRegions(RailRegions& all, fid_domain& domain, fid_ep& endpoint)
    : all_(all), domain_(domain), endpoint_(endpoint) {
  all_.open_.push_back(this);
}

EndpointRegions::~EndpointRegions() { std::erase(all_.open_, this); }

Status EndpointRegions::add(std::uint64_t key, const MemoryRange& range) {
  Fid<fid_mr> region;
  const auto failed = [&](const char* call, int rc) {
    return cannotRegister(call, rc, range, all_.device_);
  };
  if (const int rc = registerWith(domain_, range, key, region); rc != 0)
    return failed("fi_mr_reg", rc);
  // The region starts disabled. Peers cannot reach it before fi_mr_enable().
  if (const int rc = fi_mr_bind(region.get(), &endpoint_.fid, 0); rc != 0)
    return failed("fi_mr_bind", rc);
  if (const int rc = fi_mr_enable(region.get()); rc != 0) return failed("fi_mr_enable", rc);
  // Peers use this key, so the provider must not have chosen another.
  if (fi_mr_key(region.get()) != key) return failed("fi_mr_key", -FI_ENOKEY);
  regions_.emplace(key, std::move(region));
  return Ok{};
}

}  // namespace viaduct::ofi
