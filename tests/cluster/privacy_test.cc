// Records the packets between two hosts, and checks which bytes of a session and its data are
// readable.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "cluster/hosts.h"
#include "process/process.h"

namespace viaduct::testing {
namespace {

// Reads every packet of a host's interfaces.
class WireRecorder {
 public:
  // A thread opens the socket in the host's network namespace, where the socket then stays.
  explicit WireRecorder(const Host& host) {
    std::thread([&] {
      const base::Fd network(
          ::open(("/proc/" + std::to_string(host.pid()) + "/ns/net").c_str(), O_RDONLY));
      if (::setns(network.get(), CLONE_NEWNET) != 0) return;
      socket_ =
          base::Fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL)));
    }).join();
    constexpr int kRoom = 64 << 20;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kRoom, sizeof kRoom);
  }
  bool works() const { return static_cast<bool>(socket_); }
  // All packets so far.
  const std::vector<std::string>& packets() {
    std::string packet(1U << 17U, '\0');
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (got > 0) packets_.push_back(packet.substr(0, static_cast<std::size_t>(got)));
    }
    return packets_;
  }
  bool saw(const std::string& text) {
    const auto& all = packets();
    return std::any_of(all.begin(), all.end(), [&](const std::string& packet) {
      return packet.find(text) != std::string::npos;
    });
  }

 private:
  base::Fd socket_;
  std::vector<std::string> packets_;
};

class PrivacyOnTheWire : public ::testing::Test {
 protected:
  static constexpr const char* kSecret = "a-secret-of-the-group-8f1b7f0f3b6f2a99d1c0";
  static constexpr const char* kLabel = "a-label-of-a-pin-8f1b7f0f";
  static constexpr std::size_t kBytes = std::size_t{1} << 20U;
  static constexpr char kByte = 0x5b;

  void SetUp() override {
    if (!a_.made() || !b_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
    ASSERT_TRUE(join(a_, b_, "rail0", "10.77.0.1/24", "10.77.0.2/24"));
  }
  // Two agents with these settings, which know each other.
  void connect(const std::string& privacy_a, const std::string& privacy_b) {
    const std::string both = std::string(" backends=tcp secret=") + kSecret;
    a_peer_.emplace("name=a listen=10.77.0.1:0 privacy=" + privacy_a + both, a_.pid());
    b_peer_.emplace("name=b listen=10.77.0.2:0 privacy=" + privacy_b + both, b_.pid());
    for (PeerProcess* peer : {&*a_peer_, &*b_peer_}) {
      peer->must("memory data " + std::to_string(kBytes));
      peer->must(std::string("memory ") + kLabel + " 4096");
    }
    b_peer_->must("import " + a_peer_->card());
    b_peer_->must("ready a 10000");
  }
  // Writes and reads memory full of kByte. Returns the path.
  std::string move() {
    b_peer_->must("fill data " + std::to_string(kByte));
    b_peer_->must("plan w write a data data 65536");
    b_peer_->must("post w");
    const std::string path = b_peer_->must("wait w 20000");
    EXPECT_EQ(a_peer_->number("differ data " + std::to_string(kByte)), 0);
    b_peer_->must("plan r read a data data 65536");
    b_peer_->must("post r");
    b_peer_->must("wait r 20000");
    return path;
  }
  std::string move(const std::string& privacy_a, const std::string& privacy_b) {
    connect(privacy_a, privacy_b);
    return move();
  }

  Host a_, b_;
  std::optional<PeerProcess> a_peer_, b_peer_;
  const std::string payload_ = std::string(64, kByte);
};

TEST_F(PrivacyOnTheWire, TheDefaultProvesFramesAndShowsPayload) {
  WireRecorder recorder(a_);
  ASSERT_TRUE(recorder.works());
  EXPECT_NE(move("auto", "auto").find("tcp/socket+frames"), std::string::npos);
  EXPECT_TRUE(recorder.saw(payload_)) << "the recorder works";
  EXPECT_FALSE(recorder.saw(kSecret));
  EXPECT_FALSE(recorder.saw(kLabel)) << "sessions are encrypted at every level";
}

TEST_F(PrivacyOnTheWire, EncryptionShowsNeitherPayloadNorSecret) {
  WireRecorder recorder(a_);
  ASSERT_TRUE(recorder.works());
  EXPECT_NE(move("auto", "encrypted").find("tcp/socket+encrypted"), std::string::npos);
  EXPECT_GT(recorder.packets().size(), 20U);
  EXPECT_FALSE(recorder.saw(payload_));
  EXPECT_FALSE(recorder.saw(payload_.substr(0, 12)));
  EXPECT_FALSE(recorder.saw(kSecret));
}

TEST_F(PrivacyOnTheWire, OffByHandIsOffAndThePathSaysSo) {
  WireRecorder recorder(a_);
  ASSERT_TRUE(recorder.works());
  EXPECT_NE(move("off", "encrypted").find("tcp/socket+off"), std::string::npos);
  EXPECT_TRUE(recorder.saw(payload_));
}

TEST_F(PrivacyOnTheWire, RequiredRefusesAPeerThatIsOff) {
  connect("off", "required");
  const std::string answer = b_peer_->ask("plan w write a data data 65536");
  EXPECT_NE(answer.find("the peer has turned it off"), std::string::npos) << answer;
}

}  // namespace
}  // namespace viaduct::testing
