// Tests the handshake of member and server, each with another end that violates the protocol.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/net/address.h"
#include "meet/embedded/message_socket.h"
#include "meet/groups/group_messages.h"
#include "meet/groups/server.h"

namespace viaduct::meet::groups {
namespace {

using namespace embedded;
using namespace std::chrono_literals;

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
  void say(Type type, const auto& message) { EXPECT_TRUE(socket_.send(makePacket(type, message))); }
  void useKeys(const base::Handshake& proven) {
    EXPECT_TRUE(socket_.useKeys(proven.sendingKey(), proven.receivingKey()));
  }
  // Returns the next message, or the last of several that came together, or kBeat if the connection
  // ends. `take` sees each of them before the next is decoded.
  std::pair<Type, Bytes> hear(const std::function<void(const base::Frame&)>& take = {}) {
    std::pair<Type, Bytes> out{Type::kBeat, {}};
    bool heard = false, open = true;
    while (!heard && open && readable(socket_.fd())) {
      const auto got = socket_.read([&](const base::Frame& frame) -> Status {
        out = {typeOf(frame), Bytes(frame.payload.begin(), frame.payload.end())};
        heard = true;
        if (take) take(frame);
        return Ok{};
      });
      open = got && *got;
    }
    return out;
  }

 private:
  MessageSocket socket_;
};

// Returns the server's answer to a proof with this token.
std::pair<Type, Bytes> proveWith(const std::string& where, const std::string& token) {
  Talker caller(called(where));
  auto secret = *base::Handshake::dial(base::secretFromText(token), kVersion, kBinding);
  caller.say(Type::kOpen, secret.open());
  const auto [type, payload] = caller.hear();
  EXPECT_EQ(type, Type::kChallenge);
  const auto proof = secret.take(base::Handshake::Stage::kChallenge, payload, kVersion.minor);
  EXPECT_TRUE(proof);
  caller.say(Type::kProof, proof->reply);
  const auto answer = caller.hear([&](const base::Frame& frame) {
    if (typeOf(frame) != Type::kConfirm) return;
    EXPECT_TRUE(secret.take(base::Handshake::Stage::kConfirm, frame.payload, frame.minor));
    caller.useKeys(secret);
  });
  return answer.first == Type::kConfirm ? caller.hear() : answer;
}

// The member proves itself first, so a server shows nothing about its token to a stranger that only
// dials.
TEST(EmbeddedServer, DeniesAWrongProofAndShowsNone) {
  const auto server = EmbeddedServer::start({.token = "secret"});
  ASSERT_TRUE(server) << server.error().text();
  const std::string where = (*server)->addresses().front();
  EXPECT_EQ(proveWith(where, "secret").first, Type::kWelcome);
  for (const char* token : {"guessed", ""}) {
    const auto [type, payload] = proveWith(where, token);
    ASSERT_EQ(type, Type::kDeny) << token;
    EXPECT_EQ(base::decode<ErrorMessage>(payload)->error.code, Code::kDenied);
  }
}

TEST(EmbeddedServer, ClosesConnectionsThatSendOtherMessagesBeforeTheProof) {
  const auto server = EmbeddedServer::start({.token = "secret"});
  ASSERT_TRUE(server) << server.error().text();
  const std::string where = (*server)->addresses().front();
  Talker caller(called(where));
  caller.say(Type::kJoin, JoinMessage{"/viaduct", {.group = "g", .size = 1, .name = "a"}});
  EXPECT_EQ(caller.hear().first, Type::kBeat) << "hung up on";
  Talker hasty(called(where));
  hasty.say(Type::kProof, Bytes(sizeof(base::Sha256Digest)));
  EXPECT_EQ(hasty.hear().first, Type::kBeat) << "hung up on";
}

// Lets `answer` handle each connection of a member that joins, and returns the error of the join.
Error joinWith(const std::function<void(base::Fd)>& answer, Duration patience = 20s) {
  const auto listening = EmbeddedServer::listen("127.0.0.1:0");
  if (!listening) return listening.error();
  const std::jthread impostor([&] {
    while (readable(listening->get())) {
      base::Fd socket(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) return;  // the join is over
      answer(std::move(socket));
    }
  });
  const auto place =
      openGroupPlace({.where = base::localAddress(listening->get())->text(), .token = "secret"});
  if (!place) return place.error();
  const StopFlag go_on{false};
  const auto group = (*place)->join({.size = 1, .name = "m"}, patience, go_on);
  ::shutdown(listening->get(), SHUT_RDWR);
  return group ? Error{.detail = "it worked"} : group.error();
}

// Answers a member's opening with this message, and returns the error of the member's join. After a
// challenge it confirms the member's proof with these bytes.
Error joinAt(Type type, const Bytes& answer, const Bytes& confirm = {}) {
  return joinWith([&](base::Fd socket) {
    Talker server(std::move(socket));
    EXPECT_EQ(server.hear().first, Type::kOpen);
    server.say(type, answer);
    Type last = server.hear().first;
    if (last == Type::kProof) {
      server.say(Type::kConfirm, confirm);
      last = server.hear().first;
    }
    EXPECT_TRUE(last == Type::kDeny || last == Type::kBeat);
  });
}

// Another program may answer at the address and accept every member.
TEST(EmbeddedMember, RefusesAServerThatDoesNotKnowTheToken) {
  const auto key = base::KeyExchange::begin();
  ASSERT_TRUE(key);
  const Error why = joinAt(Type::kChallenge, base::encode(key->publicKey()), Bytes(sizeof(Key)));
  EXPECT_EQ(why.code, Code::kDenied) << why.text();
  EXPECT_NE(why.text().find("the token is not the meeting place's"), std::string::npos);
}

TEST(EmbeddedMember, RefusesAWelcomeWithoutTheServersProof) {
  const Error why = joinAt(Type::kWelcome, base::encode(WelcomeMessage{.detect_ms = 1000}));
  EXPECT_EQ(why.code, Code::kProtocol) << why.text();
}

// Sends the text as another program's greeting, and keeps the connection open until the member ends
// it.
Error joinAtProgram(std::string_view greeting) {
  return joinWith([&](const base::Fd& socket) {
    EXPECT_EQ(::send(socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(greeting.size()));
    std::array<char, 512> rest{};
    while (::recv(socket.get(), rest.data(), rest.size(), 0) > 0) {
    }
  });
}

TEST(EmbeddedMember, QuotesAProgramThatIsNoMeetingPlace) {
  for (const char* greeting : {"220 mail\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
                               "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"}) {
    const Error why = joinAtProgram(greeting);
    EXPECT_EQ(why.code, Code::kProtocol) << "final: " << why.text();
    const std::string line(greeting, std::string_view(greeting).find('\r'));
    EXPECT_NE(why.text().find("it sent \"" + line + "\""), std::string::npos) << why.text();
  }
  const Error odd = joinAtProgram("\x1b[31m\xff is no text, and longer than a head");
  EXPECT_NE(odd.text().find("it sent \"\\x1b[31m\\xff is no text"), std::string::npos)
      << odd.text();
}

// The member tries again until its deadline, because a meeting place may start there later.
TEST(EmbeddedMember, SaysThatAProgramHungUp) {
  const Error why = joinWith(
      [&](const base::Fd& socket) {
        // The member's opening is read, so that closing sends no reset.
        std::array<char, 512> opening{};
        EXPECT_GT(::recv(socket.get(), opening.data(), opening.size(), 0), 0);
      },
      300ms);
  // The deadline may cut the last try off before the program has answered.
  EXPECT_TRUE(why.text().find("it accepted the connection, and closed it") != std::string::npos ||
              why.text().find("it accepted the connection, and is silent") != std::string::npos)
      << why.text();
}

// A message of the next major version. Its header has the version at the same offset as every
// header.
Bytes messageOfTheNextVersion(Type type) {
  base::FrameProtocol next = kMeetFrames;
  ++next.version.major;
  base::FrameSealer sealer(next);
  const auto header = sealer.seal(static_cast<std::uint8_t>(type), {}, {}, 0);
  return {header.begin(), header.end()};
}

void sendAll(const base::Fd& socket, const Bytes& bytes) {
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

TEST(EmbeddedServer, AMemberOfAnotherMajorVersionLearnsTheVersion) {
  std::vector<std::string> lines;
  std::mutex mutex;
  const auto server =
      EmbeddedServer::start({.token = "secret", .say = [&](const std::string& line) {
                               const std::lock_guard lock(mutex);
                               lines.push_back(line);
                             }});
  ASSERT_TRUE(server) << server.error().text();
  const base::Fd socket = called((*server)->addresses().front());
  sendAll(socket, messageOfTheNextVersion(Type::kOpen));
  std::array<std::byte, 6> start{};
  ASSERT_EQ(::recv(socket.get(), start.data(), start.size(), MSG_WAITALL), 6);
  EXPECT_EQ(base::textOf(ByteSpan(start).first(4)), "VDMP");
  EXPECT_EQ(start[4], std::byte{kVersion.major});
  std::array<char, 512> rest{};
  while (::recv(socket.get(), rest.data(), rest.size(), 0) > 0) {
  }
  const std::lock_guard lock(mutex);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("version 2.0"), std::string::npos) << lines[0];
}

TEST(EmbeddedMember, ANewerServerIsRefusedAtOnceAndItsVersionNamed) {
  int tries = 0;
  const Error why = joinWith([&](const base::Fd& socket) {
    ++tries;
    sendAll(socket, messageOfTheNextVersion(Type::kDeny));
    std::array<char, 512> rest{};
    while (::recv(socket.get(), rest.data(), rest.size(), 0) > 0) {
    }
  });
  EXPECT_EQ(why.code, Code::kUnsupported) << why.text();
  EXPECT_NE(why.text().find("version 2.0"), std::string::npos) << why.text();
  EXPECT_NE(why.text().find("this end 1.0"), std::string::npos) << why.text();
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace viaduct::meet::groups
