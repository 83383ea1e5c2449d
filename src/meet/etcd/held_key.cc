#include "meet/etcd/held_key.h"

#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
#include "base/log.h"
#include "meet/identity.h"
#include "meet/records.h"

namespace viaduct::meet::etcd {
namespace {

constexpr std::chrono::seconds kAgain{1};

}  // namespace

Result<std::unique_ptr<HeldKey>> HeldKey::make(std::shared_ptr<Client> client, Options options,
                                               const Wait& wait) {
  options.value = encodeRecord(Entry{ownIdentity(), std::move(options.value)});
  std::unique_ptr<HeldKey> out(new HeldKey(std::move(client), std::move(options)));
  VIADUCT_TRY(const bool ours, out->make(wait));
  if (!ours) return std::unique_ptr<HeldKey>();
  const base::BlockedSignals blocked;
  try {
    out->thread_ = std::thread([self = out.get()] { self->keep(); });
  } catch (const std::system_error& error) {
    return systemError(Code::kExhausted, "start etcd's thread", error.code().value());
  }
  return out;
}

Result<bool> HeldKey::make(const Wait& wait) {
  for (;;) {
    VIADUCT_TRY(lease_, Lease::grant(client_, options_.detect, wait));
    const auto body =
        client_->call(kTxnPath, createJson(options_.key, options_.value, lease_->id()), wait);
    if (body) {
      VIADUCT_TRY(const CreateReply reply, parseCreate(*body));
      // An earlier try, whose answer was lost, may have created the key under this lease.
      return reply.created || (reply.found && reply.found->lease == lease_->id());
    }
    // A slow etcd lets a lease expire before it makes the key.
    const bool expired = body.error().detail.find("lease not found") != std::string::npos;
    if (!expired || wait.stopped() || Clock::now() >= wait.until) return body.error();
  }
}

void HeldKey::keep() {
  pthread_setname_np(pthread_self(), "viaduct-etcd");
  while (const auto lost = lease_->keep(bell_)) {
    if (options_.lost) return options_.lost(*lost);
    base::log(base::LogLevel::kWarning, "{} is made again: {}", options_.key, lost->text());
    while (!makeAgain())
      if (bell_.waitUntil(Clock::now() + kAgain)) return;
  }
  lease_.reset();
}

// The lease was lost while etcd was out of reach or this process was stopped. etcd may answer
// again.
bool HeldKey::makeAgain() {
  const auto made = make({.until = Clock::now() + Lease::timeOf(options_.detect) + Lease::kPatience,
                          .stop = &bell_.rung()});
  return made && *made;
}

// Without a thread the key was never created.
HeldKey::~HeldKey() {
  if (!thread_.joinable()) return;
  bell_.ring();
  thread_.join();
}

bool OthersKeys::mayTakeAway(const KeyValue& kv) const {
  if (kv.created == tried_ || kv.lease == 0) return false;
  const auto entry = decodeRecord<Entry>(kv.value);
  return entry && isProvablyDead(entry->identity);
}

void OthersKeys::takeAway(Client& client, const KeyValue& kv, const Wait& wait) {
  tried_ = kv.created;
  static_cast<void>(revoke(client, kv.lease, wait));
}

}  // namespace viaduct::meet::etcd
