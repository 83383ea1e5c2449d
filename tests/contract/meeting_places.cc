#include "contract/meeting_places.h"

#include <gtest/gtest.h>

#include "kubernetes/fake_kube.h"
#include "meet/groups/server.h"
#include "support/etcd_server.h"
#include "support/tcpstore_server.h"

namespace viaduct::testing {
namespace {

class RunningEmbedded final : public RunningPlace {
 public:
  RunningEmbedded(const std::string& token, std::chrono::milliseconds detect)
      : token_(token), detect_(detect) {
    start("127.0.0.1:0");
    if (server_) where_ = server_->addresses().front();
  }
  meet::PlaceOptions options() const override {
    return {.where = where_, .token = token_, .detect = detect_};
  }
  meet::PlaceOptions optionsAt(const std::string& address) override {
    return {.where = address, .token = token_, .detect = detect_};
  }
  void kill() override { server_.reset(); }
  void revive() override { start(where_); }
  std::uint64_t requests() override { return server_->counts().received; }

 private:
  void start(const std::string& where) {
    auto server =
        meet::EmbeddedServer::start({.listen = {where}, .token = token_, .detect = detect_});
    if (!server) ADD_FAILURE() << server.error().text();
    if (server) server_ = std::move(*server);
  }

  std::string where_;
  std::string token_;
  std::chrono::milliseconds detect_;
  std::unique_ptr<meet::EmbeddedServer> server_;
};

class RunningEtcd final : public RunningPlace {
 public:
  RunningEtcd(std::string token, std::chrono::milliseconds detect)
      : token_(std::move(token)), detect_(detect) {}
  meet::PlaceOptions options() const override {
    return {.where = server_.url(), .token = token_, .detect = detect_};
  }
  meet::PlaceOptions optionsAt(const std::string& address) override {
    return {.where = "http://" + address, .token = token_, .detect = detect_};
  }
  void kill() override { server_.kill(); }
  void forget() override { server_.wipe(); }
  void revive() override { server_.start(); }
  // etcd's own counters of the calls that it has got.
  std::uint64_t requests() override {
    const std::string sum = shell("curl -s " + server_.url() +
                                  "/metrics | awk '/^grpc_server_msg_received_total/ {n += $2} "
                                  "END {print n + 0}'");
    return static_cast<std::uint64_t>(std::stod(sum));
  }

 private:
  std::string token_;
  std::chrono::milliseconds detect_;
  EtcdServer server_;
};

template <meet::tcpstore::Dialect kDialect>
class RunningTcpStore final : public RunningPlace {
 public:
  RunningTcpStore(std::string token, std::chrono::milliseconds detect)
      : token_(std::move(token)), detect_(detect) {}
  ~RunningTcpStore() override { EXPECT_EQ(server_.refusals(), 0U) << server_.refusal(); }
  RunningTcpStore(const RunningTcpStore&) = delete;
  RunningTcpStore& operator=(const RunningTcpStore&) = delete;
  meet::PlaceOptions options() const override {
    return {.where = "tcpstore:" + server_.where(), .token = token_, .detect = detect_};
  }
  meet::PlaceOptions optionsAt(const std::string& address) override {
    return {.where = "tcpstore:" + address, .token = token_, .detect = detect_};
  }
  void kill() override { server_.kill(); }
  void revive() override {
    server_.start();
    before_ = server_.queries();
  }
  std::uint64_t requests() override { return server_.queries() - before_; }

 private:
  std::string token_;
  std::chrono::milliseconds detect_;
  TcpStoreServer server_{kDialect};
  std::uint64_t before_ = 0;  // queries before the last start
};

class RunningKubernetes final : public RunningPlace {
 public:
  RunningKubernetes(std::string token, std::chrono::milliseconds detect)
      : token_(std::move(token)), detect_(detect) {}
  ~RunningKubernetes() override { server_.done(); }
  RunningKubernetes(const RunningKubernetes&) = delete;
  RunningKubernetes& operator=(const RunningKubernetes&) = delete;
  meet::PlaceOptions options() const override {
    return {.where = "kubernetes:g", .token = token_, .detect = detect_};
  }
  meet::PlaceOptions optionsAt(const std::string& address) override {
    server_.configureAt("http://" + address);
    return options();
  }
  void kill() override { server_.tell("die"); }
  void forget() override { live_ = "live empty"; }
  void revive() override {
    server_.tell(live_);
    before_ = all();
  }
  std::uint64_t requests() override { return all() - before_; }

 private:
  std::uint64_t all() { return static_cast<std::uint64_t>(server_.count("all")); }

  std::string token_;
  std::chrono::milliseconds detect_;
  FakeKube server_;
  std::string live_ = "live";
  std::uint64_t before_ = 0;  // requests before the last start
};

template <class Place>
std::unique_ptr<RunningPlace> start(const std::string& token, std::chrono::milliseconds detect) {
  return std::make_unique<Place>(token, detect);
}

}  // namespace

const std::vector<PlaceKind>& placeKinds() {
  using namespace std::chrono_literals;
  constexpr std::size_t kMost = meet::kMaxValueBytes;
  static const std::vector<PlaceKind> kinds{
      {"embedded", &start<RunningEmbedded>, kMost, 5s, 2},
      {"etcd",
       [](const std::string& token, std::chrono::milliseconds detect) {
         return EtcdServer::whyAbsent().empty() ? start<RunningEtcd>(token, detect) : nullptr;
       },
       kMost, 5s, 1},
      {"tcpstore1", &start<RunningTcpStore<meet::tcpstore::Dialect::kFirst>>, kMost, 5s, 4},
      {"tcpstore2", &start<RunningTcpStore<meet::tcpstore::Dialect::kSecond>>, kMost, 5s, 4},
      {"kubernetes", &start<RunningKubernetes>, std::size_t{191} << 10U, 15s, 5, true},
  };
  return kinds;
}

}  // namespace viaduct::testing
