// The server by itself: what it says to one that does not keep to the rules that our members keep.
#include "meet/embedded/server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/net/address.h"
#include "base/random.h"
#include "meet/embedded/messages.h"
#include "meet/embedded/proof.h"
#include "meet/embedded/stream.h"

namespace viaduct::meet::embedded {
namespace {

class Caller {
 public:
  explicit Caller(const std::string& where) {
    const auto address = base::resolve(*base::parseHostPort(where))->front();
    base::Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), address.get(), address.size), 0);
    stream_ = std::make_unique<Stream>(std::move(socket), kMaxUnproven);
  }
  void say(Type type, Bytes payload) {
    EXPECT_TRUE(stream_->send(makePacket(type, std::move(payload))));
  }
  // The next message; kBeat where the connection ends.
  std::pair<Type, Bytes> hear() {
    std::pair<Type, Bytes> out{Type::kBeat, {}};
    bool heard = false, open = true;
    while (!heard && open) {
      pollfd wait{.fd = stream_->fd(), .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, 20'000) != 1) break;
      const auto got = stream_->read(scratch_, [&](Type type, ByteSpan payload) -> Status {
        out = {type, Bytes(payload.begin(), payload.end())};
        heard = true;
        return Ok{};
      });
      open = got && *got != Stream::Read::kEnd;
    }
    return out;
  }

 private:
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(4096);
};

// What comes back for a proof made with this token.
std::pair<Type, Bytes> proveWith(const std::string& where, const std::string& token) {
  Caller caller(where);
  Proof proof{.token = base::secretFromText(token)};
  EXPECT_TRUE(base::fillSecret(proof.member_nonce));
  caller.say(Type::kOpen, OpenMessage{.nonce = proof.member_nonce}.encode());
  const auto [type, payload] = caller.hear();
  EXPECT_EQ(type, Type::kChallenge);
  proof.server_nonce = ChallengeMessage::decode(payload)->nonce;
  caller.say(Type::kProof, ProofMessage{proof.ofMember()}.encode());
  return caller.hear();
}

// Our own members would see by the server's proof that they do not fit together; it does not trust
// them to look.
TEST(EmbeddedServer, DeniesAWrongProofItself) {
  const auto server = EmbeddedServer::start({.token = "secret"});
  ASSERT_TRUE(server) << server.error().text();
  const std::string where = (*server)->addresses().front();
  EXPECT_EQ(proveWith(where, "secret").first, Type::kWelcome);
  for (const char* token : {"guessed", ""}) {
    const auto [type, payload] = proveWith(where, token);
    ASSERT_EQ(type, Type::kDeny) << token;
    EXPECT_EQ(ErrorMessage::decode(payload)->error.code, Code::kDenied);
  }
}

TEST(EmbeddedServer, HearsNobodyBeforeTheProof) {
  const auto server = EmbeddedServer::start({.token = "secret"});
  ASSERT_TRUE(server) << server.error().text();
  const std::string where = (*server)->addresses().front();
  Caller caller(where);
  caller.say(Type::kJoin, JoinMessage{"/viaduct", {.group = "g", .size = 1, .name = "a"}}.encode());
  EXPECT_EQ(caller.hear().first, Type::kBeat) << "hung up on";
  Caller hasty(where);
  hasty.say(Type::kProof, ProofMessage{}.encode());
  EXPECT_EQ(hasty.hear().first, Type::kBeat) << "hung up on";
}

}  // namespace
}  // namespace viaduct::meet::embedded
