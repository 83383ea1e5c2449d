// `viaduct p2p` on loopback, as users type it: its output, its errors, its end.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "base/fd.h"
#include "support/free_port.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;

class P2pCommand : public ::testing::Test {
 protected:
  std::vector<std::string> words(const std::string& mode, std::vector<std::string> more = {}) {
    std::vector<std::string> out{"p2p", "--mode", mode, "--ip", "127.0.0.1", "--port", port_};
    return withFlags(std::move(out), more);
  }
  // Runs an initiator to its end.
  int initiate(std::vector<std::string> more, const std::vector<std::string>& environment = {}) {
    Program program(words("initiator", std::move(more)), environment);
    const int code = program.finish();
    out_ = program.out();
    err_ = program.err();
    return code;
  }

  const std::string port_ = std::to_string(freePort());
  std::string out_, err_;
};

TEST_F(P2pCommand, TheTwoCommandsWorkAsTheyAreTyped) {
  Program target(words("target"));
  ASSERT_TRUE(target.readUntil("waiting for"));
  EXPECT_TRUE(has(target.out(), "no secret")) << "what that means is said";
  const std::vector<std::string> sizes{
      "--buffer_sizes", "4KB,1MB,1MiB", "--iterations", "10", "--warmup", "2"};
  // Several sizes, one after the other.
  EXPECT_EQ(initiate(sizes), 0) << err_;
  for (const char* part : {"GB/s", "mean us", " 4 KB ", " 1 MB ", " 1 MiB ", "local/", "proof: "})
    EXPECT_TRUE(has(out_, part)) << part << "\n" << out_;
  EXPECT_EQ(initiate(sizes, {"VIADUCT_BACKENDS=tcp"}), 0) << err_;
  EXPECT_TRUE(has(out_, "tcp/socket")) << out_;
  ::kill(target.pid(), SIGINT);
  EXPECT_EQ(target.finish(), 0) << "Ctrl-C is how a target ends";
  EXPECT_TRUE(has(target.out(), " connected\n")) << target.out();
  EXPECT_TRUE(has(target.out(), " disconnected\n")) << target.out();
}

TEST_F(P2pCommand, ResultsAreWrittenAsAFile) {
  const std::string file = ::testing::TempDir() + "p2p_" + std::to_string(::getpid()) + ".json";
  Program target(words("target"));
  ASSERT_TRUE(target.readUntil("waiting for"));
  ASSERT_EQ(initiate({"--buffer_sizes", "64KB", "--iterations", "5", "--json", file}), 0) << err_;
  std::ifstream in(file);
  const Json report = Json::parse(in);
  std::filesystem::remove(file);
  EXPECT_EQ(report.at("environment").at("members").size(), 2U);
  ASSERT_EQ(report.at("rows").size(), 1U);
  const Json& row = report.at("rows")[0];
  EXPECT_EQ(row.at("block_size"), 64'000);
  EXPECT_EQ(row.at("iterations"), 5);
  EXPECT_GT(row.at("latency_us").at("mean"), 0);
  EXPECT_EQ(row.at("path")[0].at("bytes"), row.at("transfers").get<std::uint64_t>() * 64'000);
}

TEST_F(P2pCommand, NobodyListening) {
  EXPECT_EQ(initiate({"--timeout", "2s"}), 1);
  EXPECT_TRUE(has(err_, "no process listens there")) << err_;
  EXPECT_TRUE(has(err_, "127.0.0.1:" + port_)) << err_;
}

// A listener that never sends a byte, as a web server that waits for a request.
TEST_F(P2pCommand, SomethingElseListening) {
  const base::Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port_)));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
  ASSERT_EQ(::listen(listening.get(), 8), 0);
  EXPECT_EQ(initiate({"--timeout", "500ms"}), 1);
  EXPECT_TRUE(has(err_, "the listener is not a `viaduct p2p` target")) << err_;
}

TEST_F(P2pCommand, SecretsThatDiffer) {
  Program target(words("target", {"--secret", "one"}));
  ASSERT_TRUE(target.readUntil("waiting for"));
  EXPECT_TRUE(has(target.out(), "only initiators with the secret")) << target.out();
  EXPECT_EQ(initiate({"--buffer_sizes", "4KB"}), 1);
  EXPECT_TRUE(has(err_, "wrong secret")) << err_;
  EXPECT_TRUE(has(err_, "give the --secret of the target here")) << err_;
  EXPECT_EQ(initiate({"--secret", "two", "--buffer_sizes", "4KB"}), 1);
  EXPECT_TRUE(has(err_, "give both ends the same --secret")) << err_;
  EXPECT_EQ(initiate({"--secret", "one", "--buffer_sizes", "4KB"}), 0) << err_;
}

TEST_F(P2pCommand, APortThatIsInUseAndAnAddressOfSomebodyElse) {
  Program target(words("target"));
  ASSERT_TRUE(target.readUntil("waiting for"));
  Program second(words("target"));
  EXPECT_EQ(second.finish(), 1);
  EXPECT_TRUE(has(second.err(), "the port is in use")) << second.err();
  Program elsewhere({"p2p", "--mode", "target", "--ip", "192.0.2.1", "--port", port_});
  EXPECT_EQ(elsewhere.finish(), 1);
  EXPECT_TRUE(has(elsewhere.err(), "this host does not have")) << elsewhere.err();
}

TEST_F(P2pCommand, ARequiredPathThatIsNotThere) {
  Program target(words("target"));
  ASSERT_TRUE(target.readUntil("waiting for"));
  EXPECT_EQ(initiate({"--buffer_sizes", "4KB", "--require", "rdma"}), 1);
  EXPECT_TRUE(has(out_, "not-required: rdma was required")) << out_;
}

// The fabric corrupts data without an error.
TEST_F(P2pCommand, CorruptedDataIsDetected) {
  const std::vector<std::pair<std::string, std::string>> cases{{"corrupt", "wrong from offset"},
                                                               {"swap", "of the same block"},
                                                               {"shift", "belongs to offset 8"},
                                                               {"stale", "no data arrived"}};
  for (const auto& [harm, said] : cases) {
    const std::vector<std::string> environment{"VIADUCT_BACKENDS=fake",
                                               "VIADUCT_FAKE=far=1,lie=" + harm};
    Program target(words("target"), environment);
    ASSERT_TRUE(target.readUntil("waiting for"));
    EXPECT_EQ(initiate({"--buffer_sizes", "1MB", "--iterations", "3"}, environment), 1);
    EXPECT_TRUE(has(out_, "corrupt: ")) << harm << "\n" << out_;
    EXPECT_TRUE(has(out_, said)) << harm << "\n" << out_;
  }
}

// The fabric claims to be RDMA, but copies in memory.
TEST_F(P2pCommand, ALocalCopyThatPosesAsANetworkIsCaught) {
  const std::vector<std::string> environment{"VIADUCT_BACKENDS=fake", "VIADUCT_FAKE=far=1,pose=1"};
  Program target(words("target"), environment);
  ASSERT_TRUE(target.readUntil("waiting for"));
  EXPECT_EQ(initiate({"--buffer_sizes", "1MB", "--iterations", "3"}, environment), 1);
  EXPECT_TRUE(has(out_, "fallback: ")) << out_;
  EXPECT_TRUE(has(out_, "DISPROVEN")) << out_;
  EXPECT_EQ(initiate({"--buffer_sizes", "1MB", "--require", "rdma"}, environment), 1);
  EXPECT_TRUE(has(out_, "not-required: rdma was required")) << out_;
}

TEST_F(P2pCommand, CudaWithoutAUsableGpuSaysWhy) {
  for (const char* mode : {"target", "initiator"}) {
    Program program(words(mode, {"--cuda", "--gpu_id", "0"}));
    EXPECT_EQ(program.finish(), 1);
    EXPECT_TRUE(has(program.err(), "--cuda")) << program.err();
    EXPECT_TRUE(has(program.err(), "what to do")) << program.err();
  }
}

TEST_F(P2pCommand, WrongWordsAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"p2p"}, "--mode"},
      {{"p2p", "--mode", "server", "--ip", "127.0.0.1"}, "\"server\" is none of target, initiator"},
      {{"p2p", "--mode", "target"}, "--ip"},
      {{"p2p", "--mode", "target", "--ip", "::1", "--port", "0"}, "\"0\" is not a whole number"},
      {words("initiator", {"--buffer_sizes", "1MB,x"}), "\"x\""},
      {words("initiator", {"--iterations", "0"}), "\"0\" is not a whole number"},
      {words("initiator", {"--link-rate", "eth0"}), "the device is missing"},
      {words("initiator", {"--require", "backend:x"}),
       "--require: invalid: there is no backend \"x\"; what to do: choose"},
      {words("initiator", {"--require", "rdm"}),
       "--require: invalid: \"rdm\" is not a requirement; what to do: use rdma"},
      {words("initiator", {"--json", "/no/such/folder/x"}), "No such file"},
  };
  for (const auto& [arguments, part] : cases) {
    Program program(arguments);
    EXPECT_EQ(program.finish(), 2) << part;
    EXPECT_TRUE(has(program.err(), part)) << program.err();
  }
}

TEST_F(P2pCommand, WithoutItsFlagsItPrintsTheTwoCommands) {
  Program program({"p2p"});
  EXPECT_EQ(program.finish(), 2);
  const auto at = [&](const std::string& front) {
    const auto from = program.err().find(front);
    EXPECT_NE(from, std::string::npos) << front << "\n" << program.err();
    if (from == std::string::npos) return std::string();
    return program.err().substr(from + front.size(),
                                program.err().find('\n', from) - from - front.size());
  };
  const std::string ip = at("on this host:       viaduct p2p --mode target --ip ");
  EXPECT_FALSE(ip.empty() || ip == "0.0.0.0");
  EXPECT_EQ(at("on the other host:  viaduct p2p --mode initiator --ip "), ip);
}

// 0.0.0.0 stands for every interface, and another host cannot connect to it.
TEST_F(P2pCommand, ATargetOnAllAddressesNamesOneOfThem) {
  Program target(
      {"p2p", "--mode", "target", "--ip", "0.0.0.0", "--port", port_, "--secret", "word"});
  ASSERT_TRUE(target.readUntil("waiting for: viaduct p2p --mode initiator --ip ")) << target.out();
  const std::string line = target.out().substr(target.out().find("--ip "));
  EXPECT_NE(line.find("--port " + port_ + " --secret WORD\n"), std::string::npos) << line;
  EXPECT_FALSE(has(line, "0.0.0.0")) << line;
  // Runs the printed command, as the user of the other host would.
  const std::string ip = line.substr(5, line.find(' ', 5) - 5);
  Program initiator({"p2p", "--mode", "initiator", "--ip", ip, "--port", port_, "--secret", "word",
                     "--buffer_sizes", "4KB", "--iterations", "5"});
  EXPECT_EQ(initiator.finish(), 0) << initiator.err();
}

TEST_F(P2pCommand, AnInterruptedInitiatorKeepsItsRows) {
  Program target(words("target"));
  ASSERT_TRUE(target.readUntil("waiting for"));
  Program initiator(words(
      "initiator", {"--buffer_sizes", "4KB,1MB", "--iterations", "4000000000", "-i", "0.05"}));
  ASSERT_TRUE(initiator.readUntil("write 1 x ")) << initiator.out();
  initiator.interrupt(SIGINT);
  EXPECT_EQ(initiator.finish(), 130);
  EXPECT_TRUE(has(initiator.err(), "interrupted; 1 row measured")) << initiator.err();
  EXPECT_TRUE(has(initiator.out(), " of 4000000000 transfers\n")) << initiator.out();
  EXPECT_EQ(initiate({"--buffer_sizes", "4KB"}), 0) << "the target takes the next one: " << err_;
}

TEST_F(P2pCommand, AnInterruptedTargetLeavesThePartialRow) {
  for (const char* op : {"write", "read"}) {
    Program target(words("target"));
    ASSERT_TRUE(target.readUntil("waiting for"));
    Program initiator(words("initiator", {"--buffer_sizes", "4KB,1MB", "--duration", "1000s", "-i",
                                          "0.05", "--op", op, "--bidirectional"}));
    ASSERT_TRUE(initiator.readUntil(std::string(op) + " 1 x ")) << initiator.out();
    target.interrupt(SIGINT);
    EXPECT_EQ(target.finish(), 0);
    EXPECT_EQ(initiator.finish(), 1);
    EXPECT_TRUE(has(initiator.err(), "the target was interrupted")) << initiator.err();
    EXPECT_TRUE(has(initiator.out(), " of 1000 s")) << initiator.out();
  }
}

TEST_F(P2pCommand, ATargetThatIsKilledEndsTheInitiator) {
  Program target(words("target"));
  ASSERT_TRUE(target.readUntil("waiting for"));
  Program initiator(words("initiator", {"--buffer_sizes", "1MB", "--iterations", "4000000000"}));
  ASSERT_TRUE(initiator.readUntil("    size"));
  ::kill(target.pid(), SIGKILL);
  EXPECT_EQ(initiator.finish(), 1);
  EXPECT_TRUE(has(initiator.err(), "peer lost")) << initiator.err();
}

TEST_F(P2pCommand, AWaitingInitiatorNamesTheMissingTarget) {
  EXPECT_EQ(initiate({"--timeout", "4s"}), 1);
  EXPECT_TRUE(
      has(err_, "still waiting: connect to 127.0.0.1:" + port_ + ": no process listens there"))
      << err_;
  EXPECT_TRUE(has(err_, " s left\n")) << err_;
  EXPECT_EQ(out_, "");
}

}  // namespace
}  // namespace viaduct::testing
