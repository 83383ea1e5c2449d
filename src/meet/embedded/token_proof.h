// The proof of both ends that they know the token, without sending it. Pure. Threads: plain values.
#pragma once

#include <string_view>

#include "base/net/crypto.h"
#include "meet/embedded/frame.h"

namespace viaduct::meet::embedded {

// The proof of one connection. Both nonces are fresh, so no proof is valid for another connection.
struct TokenProof {
  Key token = {};
  Key member_nonce = {}, server_nonce = {};

  base::Digest ofMember() const { return over("meeting member"); }
  base::Digest ofServer() const { return over("meeting server"); }
  Key fromMember() const { return over("messages to the meeting server"); }
  Key fromServer() const { return over("messages to the meeting member"); }

 private:
  base::Digest over(std::string_view purpose) const;
};

}  // namespace viaduct::meet::embedded
