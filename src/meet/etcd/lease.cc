#include "meet/etcd/lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace viaduct::meet::etcd {
namespace {

constexpr std::chrono::seconds kGoodbye{1};

}  // namespace

void Bell::ring() {
  {
    const std::lock_guard lock(mutex_);
    rung_ = true;
  }
  changed_.notify_all();
}

bool Bell::waitUntil(Clock::time_point when) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, when, [this] { return rung_.load(); });
}

std::chrono::seconds Lease::timeOf(std::chrono::milliseconds detect) {
  return std::max(kLeast, std::chrono::ceil<std::chrono::seconds>(detect));
}

Result<std::unique_ptr<Lease>> Lease::grant(std::shared_ptr<Client> client,
                                            std::chrono::milliseconds detect, const Wait& wait) {
  // We choose the id, so that a repeated grant after a lost answer is the same lease.
  VIADUCT_TRY(const std::uint64_t random, base::secretNumber());
  const auto id = static_cast<LeaseId>((random & INT64_MAX) | 1U);
  auto ttl = timeOf(detect);
  const auto body = client->call(kGrantPath, grantJson(id, ttl.count()), wait);
  if (body) {
    VIADUCT_TRY(const std::int64_t given, parseGrant(*body));
    ttl = std::chrono::seconds(given);
  } else if (body.error().detail.find("lease already exists") == std::string::npos) {
    return body.error();
  }
  return std::unique_ptr<Lease>(new Lease(std::move(client), id, ttl));
}

Lease::~Lease() {
  if (!lost_) static_cast<void>(revoke(*client_, id_, {.until = Clock::now() + kGoodbye}));
}

std::optional<Error> Lease::keep(Bell& bell) {
  while (!bell.waitUntil(kept_at_ + std::chrono::milliseconds(ttl_) / 3)) {
    Status renewed = renew(bell);
    if (bell.rung()) break;
    if (renewed) {
      kept_at_ = Clock::now();
      continue;
    }
    lost_ = true;
    Error why = std::move(renewed).error();
    why.code = Code::kPeerLost;
    why.operation = "etcd lease";
    return why;
  }
  return std::nullopt;
}

// A try may take a third of the lease's time, so that another endpoint is tried before the lease
// expires.
Status Lease::renew(const Bell& bell) {
  const Wait wait{.until = kept_at_ + ttl_ + kPatience, .stop = &bell.rung()};
  VIADUCT_TRY(const std::string body, client_->call(kKeepAlivePath, leaseJson(id_), wait,
                                                    std::chrono::milliseconds(ttl_) / 3));
  VIADUCT_TRY(const std::int64_t ttl, parseKeepAlive(body));
  if (ttl > 0) return Ok{};
  return Error{.detail = "the lease of this process has expired",
               .cause = fmt::format("this process was stopped, or could not reach etcd, for {} s",
                                    ttl_.count())};
}

Status revoke(Client& client, LeaseId lease, const Wait& wait) {
  VIADUCT_CHECK(client.call(kRevokePath, leaseJson(lease), wait));
  return Ok{};
}

}  // namespace viaduct::meet::etcd
