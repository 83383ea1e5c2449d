// Every way to give etcd's address and credentials, and the errors for wrong ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "app/bench_etcd.h"
#include "support/etcd_access.h"
#include "support/free_port.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

const Words kShort{"--backend=tcp", "--max_block_size=4096", "--total_buffer_size=1048576",
                   "--num_iter=16", "--meet_timeout=20s"};

TEST(BenchAtEtcd, EndpointsAreUnderstoodAsPeopleWriteThem) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  const std::string port = ":" + std::to_string(etcd.port());
  for (const std::string& endpoints :
       {"http://127.0.0.1:" + std::to_string(freePort()) + "," + etcd.url(), etcd.url() + "/",
        "127.0.0.1" + port, "localhost" + port + "," + etcd.url() + "/"}) {
    Pair pods(Words{"--etcd_endpoints", endpoints} + kShort);
    pods.expectOneRun();
    EXPECT_TRUE(has(pods.printed(), ": " + endpoints + "\n")) << pods.printed();
  }
}

TEST(BenchAtEtcd, TheEnvironmentSaysWhereForNixlbenchAndMeetForBench) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  const std::string endpoint = "127.0.0.1:" + std::to_string(etcd.port());
  Pair pods(kShort, {"NIXL_ETCD_ENDPOINTS=" + endpoint, "NIXL_ETCD_NAMESPACE=/nixl/agents"});
  pods.expectOneRun();
  EXPECT_TRUE(has(pods.printed(), ": http://" + endpoint + "\n")) << pods.printed();

  const Words asked{"bench",           "--backend=tcp",      "--block-sizes=4K",
                    "--iterations=16", "--meet-timeout=20s", "--meet"};
  Program one(asked + Words{etcd.url()}), other(asked + Words{etcd.url() + "/"});
  EXPECT_EQ(one.finish(), 0) << one.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  EXPECT_NE(one.out().empty(), other.out().empty());
}

TEST(BenchAtEtcd, AnEndpointThatCannotBeReachedIsNamedWithTheStep) {
  const std::string dead = "http://127.0.0.1:" + std::to_string(freePort());
  const std::pair<std::string, std::string> cases[] = {
      {"http://etcd.invalid:2379", "http://etcd.invalid:2379: resolve: Could not resolve host"},
      {dead, dead + ": connect: "},
  };
  for (const auto& [endpoint, said] : cases) {
    Nixlbench run(Words{"--etcd_endpoints", endpoint} + kShort + Words{"--meet_timeout=1s"});
    EXPECT_EQ(run.finish(), 1);
    EXPECT_TRUE(has(run.err(), said)) << run.err();
  }
}

TEST(BenchAtEtcd, ALibcurlThatDoesNotLoadIsNamedWithItsPackage) {
  const TemporaryFolder folder;
  folder.write("/libcurl.so.4", "not a library");
  Nixlbench run(Words{"--etcd_endpoints", "http://127.0.0.1:2379"} + kShort,
                {"LD_LIBRARY_PATH=" + folder.path()});
  EXPECT_EQ(run.finish(), 2);
  for (const char* said : {"load libcurl.so.4: ", "(Debian and Ubuntu: libcurl4)"})
    EXPECT_TRUE(has(run.err(), said)) << run.err();
}

std::string contentOf(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

TEST(BenchAtEtcd, CertificatesUserAndPasswordComeFromFlagsOrTheEnvironment) {
  VIADUCT_NEEDS_ETCD();
  const Certificates certificates;
  const EtcdServer etcd(certificates.server());
  switchAuthOn(etcd);
  const TemporaryFolder folder;
  const std::string results = folder.path() + "/results.json";
  const Words there{"--etcd_endpoints", etcd.url()};
  const Words keys{"--etcd_ca", certificates.file("ca.pem"), "--etcd-cert",
                   certificates.file("client.pem"), "-etcd_key=" + certificates.file("client.key")};
  const Words user{"--etcd_user=viaduct", "--etcd_password=S3cret"};

  Pair flags(there + keys + user + kShort + Words{"--json", results});
  flags.expectOneRun();
  const std::string all = flags.said() + flags.printed() + contentOf(results);
  EXPECT_TRUE(has(all, "\"settings\"")) << "the result file is in it";
  EXPECT_FALSE(has(all, "S3cret")) << all;

  Pair environment(there + kShort, {"VIADUCT_MEET_USER=viaduct", "VIADUCT_MEET_PASSWORD=S3cret",
                                    "VIADUCT_MEET_CA=" + certificates.file("ca.pem"),
                                    "VIADUCT_MEET_CERTIFICATE=" + certificates.file("client.pem"),
                                    "VIADUCT_MEET_KEY=" + certificates.file("client.key")});
  environment.expectOneRun();

  Nixlbench wrong(there + keys + Words{"--etcd_user=viaduct", "--etcd_password=guess3d"} + kShort);
  EXPECT_EQ(wrong.finish(), 1);
  EXPECT_TRUE(has(wrong.err(), etcd.url() + ": auth:")) << wrong.err();
  EXPECT_FALSE(has(wrong.err(), "guess3d")) << wrong.err();
  Nixlbench untrusted(there + user + kShort + Words{"--meet_timeout=5s"});
  EXPECT_EQ(untrusted.finish(), 1);
  EXPECT_TRUE(has(untrusted.err(), etcd.url() + ": TLS:")) << untrusted.err();
}

TEST(BenchAtEtcd, APasswordIsNotPrintedByAComparison) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  const Words words =
      Words{"bench",         "--meet",           etcd.url(),  "--duration=20ms", "--rounds=4",
            "--backend=tcp", "--block-sizes=4K", "--against", "--batch 2"};
  const Words keys{"VIADUCT_MEET_USER=viaduct", "VIADUCT_MEET_PASSWORD=S3cret"};
  Program one(words, keys), other(words, keys);
  EXPECT_EQ(one.finish(), 0) << one.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  const std::string all = one.out() + other.out() + one.err() + other.err();
  EXPECT_TRUE(has(all, "A: viaduct bench --backend tcp")) << all;
  EXPECT_FALSE(has(all, "S3cret")) << all;
}

TEST(BenchAtEtcd, UselessAndWrongFlagsAreRefused) {
  const std::pair<Words, const char*> cases[] = {
      {{"--local_workers", "2", "--etcd-user", "x"},
       "--etcd_user: invalid: the workers do not meet at an etcd"},
      {{"--meet", "127.0.0.1:1", "--etcd_ca", "f"}, "--etcd_ca: invalid: the workers do not meet"},
      {{"--local_workers", "2", "--rank", "1"}, "--rank: invalid: all workers run here"},
      {{"--etcd_endpoints", "http://et!cd:1"}, "'!' at position 10"},
      {{"--etcd_endpoints", "http://a:1", "--etcd_ca", "/no/file"}, "/no/file"},
      {{"--etcd_endpoints", "http://a:1", "--etcd_password", "x"}, "without a user"},
      {{"--etcd_endpoints", "a:1", "--runtime_type", "ASIO"},
       "--etcd_endpoints and --runtime_type"},
      {{"--local-workers", "2", "--runtime_type", "ETCD"}, "--local_workers and --runtime_type"},
  };
  for (const auto& [flags, words] : cases) {
    Nixlbench run(flags);
    EXPECT_EQ(run.finish(), 2) << words;
    EXPECT_TRUE(has(run.err(), words)) << run.err();
  }
}

}  // namespace
}  // namespace viaduct::testing
