#include "meet/etcd/lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace viaduct::meet::etcd {

Lease::Lease(CurlLoop& loop, Client& client, std::chrono::milliseconds detect)
    : loop_(loop),
      client_(client),
      ttl_(std::max(kLeast, std::chrono::ceil<std::chrono::seconds>(detect))) {}

Lease::~Lease() { loop_.forget(timer_); }

void Lease::stop() { loop_.forget(std::exchange(timer_, 0)); }

void Lease::want(Clock::time_point until, std::function<void(Result<LeaseId>)> done) {
  if (id_ != 0) return done(id_);
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;
  // Our own number, so that a grant that is asked for again after a lost answer is the same lease.
  std::array<std::uint8_t, sizeof(LeaseId)> bytes{};
  if (auto filled = base::fillSecret(bytes); !filled) return granted(0, std::move(filled).error());
  LeaseId id = 0;
  std::memcpy(&id, bytes.data(), sizeof(id));
  id = (id & INT64_MAX) | 1;
  client_.call(kGrantPath, grantJson(id, ttl_.count()), until,
               [this, id](Result<std::string> body) { granted(id, std::move(body)); });
}

void Lease::granted(LeaseId id, Result<std::string> body) {
  const bool ours = !body && body.error().detail.find("lease already exists") != std::string::npos;
  Result<LeaseId> out = id;
  if (body) {
    if (const auto ttl = parseGrant(*body))
      ttl_ = std::chrono::seconds(*ttl);
    else
      out = ttl.error();
  } else if (!ours) {
    out = std::move(body).error();
  }
  if (out) {
    id_ = id;
    kept_at_ = Clock::now();
    keepAliveLater();
  }
  const auto waiting = std::exchange(waiting_, {});
  for (const auto& done : waiting) done(out);
}

void Lease::keepAliveLater() {
  timer_ = loop_.at(Clock::now() + std::chrono::milliseconds(ttl_) / 3, [this] {
    timer_ = 0;
    keepAlive();
  });
}

// An endpoint that hangs must be left for another before the lease has run out.
void Lease::keepAlive() {
  client_.call(
      kKeepAlivePath, leaseJson(id_), kept_at_ + ttl_ + kPatience,
      [this](Result<std::string> body) { kept(std::move(body)); },
      std::chrono::milliseconds(ttl_) / 3);
}

void Lease::kept(Result<std::string> body) {
  if (!body) return lose(std::move(body).error());
  const auto ttl = parseKeepAlive(*body);
  if (!ttl) return lose(ttl.error());
  if (*ttl == 0)
    return lose({.detail = "the lease of this process has expired", .cause = whyGone()});
  kept_at_ = Clock::now();
  keepAliveLater();
}

std::string Lease::whyGone() const {
  return fmt::format("this process was stopped, or could not reach etcd, for {} s", ttl_.count());
}

void Lease::lose(Error why) {
  id_ = 0;
  why.code = Code::kPeerLost;
  why.operation = "etcd lease";
  const auto subscribers = on_loss_;
  for (const auto& [id, lost] : subscribers) {
    const bool there = std::ranges::any_of(
        on_loss_, [wanted = id](const auto& one) { return one.first == wanted; });
    if (there) lost(why);
  }
}

CurlLoop::Id Lease::onLoss(std::function<void(const Error&)> lost) {
  on_loss_.emplace_back(++last_, std::move(lost));
  return last_;
}

void Lease::forgetLoss(CurlLoop::Id id) {
  std::erase_if(on_loss_, [id](const auto& one) { return one.first == id; });
}

}  // namespace viaduct::meet::etcd
