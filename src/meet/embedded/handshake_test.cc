// Tests the handshake of member and server, each with another end that violates the protocol.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "base/net/address.h"
#include "base/random.h"
#include "meet/embedded/embedded.h"
#include "meet/embedded/message_socket.h"
#include "meet/embedded/messages.h"
#include "meet/embedded/server.h"
#include "meet/embedded/token_proof.h"

namespace viaduct::meet::embedded {
namespace {

base::Fd called(const std::string& where) {
  const auto address = base::resolve(*base::parseHostPort(where))->front();
  base::Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), address.get(), address.size), 0);
  return socket;
}

bool readable(int socket) {
  pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 20'000) == 1;
}

class Talker {
 public:
  explicit Talker(base::Fd socket) : socket_(std::move(socket), kMaxUnproven) {}
  void say(Type type, Bytes payload) {
    EXPECT_TRUE(socket_.send(makePacket(type, std::move(payload))));
  }
  // Returns the next message, or kBeat if the connection ends.
  std::pair<Type, Bytes> hear() {
    std::pair<Type, Bytes> out{Type::kBeat, {}};
    bool heard = false, open = true;
    while (!heard && open && readable(socket_.fd())) {
      const auto got = socket_.read(scratch_, [&](Type type, ByteSpan payload) -> Status {
        out = {type, Bytes(payload.begin(), payload.end())};
        heard = true;
        return Ok{};
      });
      open = got && *got != MessageSocket::Read::kEnd;
    }
    return out;
  }

 private:
  MessageSocket socket_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(4096);
};

// Returns the server's answer to a proof with this token.
std::pair<Type, Bytes> proveWith(const std::string& where, const std::string& token) {
  Talker caller(called(where));
  TokenProof proof{.token = base::secretFromText(token)};
  EXPECT_TRUE(base::fillSecret(proof.member_nonce));
  caller.say(Type::kOpen, OpenMessage{.nonce = proof.member_nonce}.encode());
  const auto [type, payload] = caller.hear();
  EXPECT_EQ(type, Type::kChallenge);
  proof.server_nonce = ChallengeMessage::decode(payload)->nonce;
  caller.say(Type::kProof, ProofMessage{proof.ofMember()}.encode());
  return caller.hear();
}

// The member proves first, so only the server's check keeps a wrong token out.
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

TEST(EmbeddedServer, ClosesConnectionsThatSendOtherMessagesBeforeTheProof) {
  const auto server = EmbeddedServer::start({.token = "secret"});
  ASSERT_TRUE(server) << server.error().text();
  const std::string where = (*server)->addresses().front();
  Talker caller(called(where));
  caller.say(Type::kJoin, JoinMessage{"/viaduct", {.group = "g", .size = 1, .name = "a"}}.encode());
  EXPECT_EQ(caller.hear().first, Type::kBeat) << "hung up on";
  Talker hasty(called(where));
  hasty.say(Type::kProof, ProofMessage{}.encode());
  EXPECT_EQ(hasty.hear().first, Type::kBeat) << "hung up on";
}

// Another program may answer at the address and accept every member.
TEST(EmbeddedMember, RefusesAServerThatDoesNotKnowTheToken) {
  const auto listening = EmbeddedServer::listen("127.0.0.1:0");
  ASSERT_TRUE(listening) << listening.error().text();
  const std::jthread impostor([&] {
    ASSERT_TRUE(readable(listening->get())) << "nobody called";
    Talker server(base::Fd(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC)));
    EXPECT_EQ(server.hear().first, Type::kOpen);
    server.say(Type::kChallenge, ChallengeMessage{}.encode());
    EXPECT_EQ(server.hear().first, Type::kProof);
    server.say(Type::kWelcome, WelcomeMessage{.detect_ms = 1000}.encode());
    EXPECT_EQ(server.hear().first, Type::kBeat) << "hung up on";
  });
  const auto place =
      openEmbedded({.where = base::localAddress(listening->get())->text(), .token = "secret"});
  ASSERT_TRUE(place) << place.error().text();
  const StopFlag go_on{false};
  const auto group = (*place)->join({.size = 1, .name = "m"}, std::chrono::seconds(20), go_on);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, Code::kDenied);
  EXPECT_NE(group.error().text().find("does not know the token"), std::string::npos)
      << group.error().text();
}

}  // namespace
}  // namespace viaduct::meet::embedded
