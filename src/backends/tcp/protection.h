// The protection of the bytes on a link's data sockets. Both ends agree on it, and it is the same
// for all sockets of the link. Threads: plain values.
#pragma once

#include <viaduct/settings.h>

#include <memory>
#include <string>

#include "backends/tcp/hello.h"
#include "base/net/record_keys.h"

namespace viaduct::tcp {

// The wish of one end. It travels in Backend::address(), so only over an authenticated session.
struct PrivacyOffer {
  Privacy wish = Privacy::kAuto;
  bool fast_aes = false;  // its processor has instructions for AES
};

struct Protection {
  Privacy level = Privacy::kOff;  // kOff, kFrames, kIntegrity or kEncrypted
  base::AeadKind kind = base::AeadKind::kAesGcm;
  friend bool operator==(const Protection&, const Protection&) = default;

  bool hasRecords() const { return level >= Privacy::kIntegrity; }
};
// The stronger wish holds, but if one end wishes kOff, the result is kOff. kDenied: one end
// requires encryption, and the other wishes kOff.
Result<Protection> agree(const PrivacyOffer& ours, const PrivacyOffer& theirs, bool same_host);

// The name of the path of ops over such sockets, such as "socket+frames". Without protection it is
// "socket" on one host, and "socket+off" between hosts.
std::string_view wayOf(const Protection& protection, bool same_host);

// The keys of one socket in one life. Null: nothing is sealed.
struct SocketKeys {
  std::unique_ptr<base::RecordKeys> sealing = nullptr, opening = nullptr;
};
// `key` is that of the session's link, and `hello` began the socket. RecordKeys describes
// `blocks_per_key` and `time`.
Result<SocketKeys> keysOf(const Protection& protection, const LinkKey& key,
                          const SocketHello& hello, bool dialer,
                          std::uint64_t blocks_per_key = base::kBlocksPerKey,
                          base::SealingTime* time = nullptr);

}  // namespace viaduct::tcp
