#include "backends/tcp/protection.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace viaduct::tcp {
namespace {

Error refusedBy(bool us) {
  return {.code = Code::kDenied,
          .operation = "open tcp",
          .detail = us ? "this agent requires encryption, and the peer has turned it off"
                       : "the peer requires encryption, and this agent has turned it off",
          .cause = us ? "VIADUCT_PRIVACY=required here, VIADUCT_PRIVACY=off at the peer"
                      : "VIADUCT_PRIVACY=off here, VIADUCT_PRIVACY=required at the peer",
          .remedy = "set VIADUCT_PRIVACY=encrypted at both ends"};
}

}  // namespace

Result<Protection> agree(const PrivacyOffer& ours, const PrivacyOffer& theirs, bool same_host) {
  const Privacy stronger = std::max(ours.wish, theirs.wish);
  const bool off = ours.wish == Privacy::kOff || theirs.wish == Privacy::kOff;
  if (off && stronger == Privacy::kRequired) return refusedBy(ours.wish == Privacy::kRequired);
  Protection out{.kind = ours.fast_aes && theirs.fast_aes ? base::AeadKind::kAesGcm
                                                          : base::AeadKind::kChaCha};
  if (off) return out;
  out.level = std::min(stronger, Privacy::kEncrypted);
  if (stronger == Privacy::kAuto) out.level = same_host ? Privacy::kOff : Privacy::kFrames;
  return out;
}

std::string_view wayOf(const Protection& protection, bool same_host) {
  switch (protection.level) {
    case Privacy::kFrames:
      return "socket+frames";
    case Privacy::kIntegrity:
      return "socket+integrity";
    case Privacy::kEncrypted:
      return "socket+encrypted";
    default:
      return same_host ? "socket" : "socket+off";
  }
}

// The secret of each direction is derived from all facts that tell its socket from every other
// socket.
Result<SocketKeys> keysOf(const Protection& protection, const LinkKey& key,
                          const SocketHello& hello, bool dialer, std::uint64_t blocks_per_key,
                          base::SealingTime* time) {
  SocketKeys keys;
  if (protection.level == Privacy::kOff) return keys;
  for (const bool seals : {true, false}) {
    base::Writer what;
    what.text("viaduct tcp data").put(static_cast<std::uint8_t>(protection.level));
    what.put(static_cast<std::uint8_t>(protection.kind));
    what.raw(std::as_bytes(std::span(hello.link))).put(hello.epoch).put(hello.index);
    what.put(hello.life).put(static_cast<std::uint8_t>(seals == dialer ? 1 : 0));
    base::Key secret{};
    base::hkdfExpand(key, what.bytes(), secret);
    auto& into = seals ? keys.sealing : keys.opening;
    VIADUCT_TRY(auto aead, base::makeAead(protection.kind,
                                          seals ? base::AeadUse::kSeal : base::AeadUse::kOpen));
    VIADUCT_TRY(into, base::RecordKeys::open(std::move(aead), secret, blocks_per_key, time));
    base::wipe(secret);
  }
  return keys;
}

}  // namespace viaduct::tcp
