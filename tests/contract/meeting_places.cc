#include "contract/meeting_places.h"

#include <gtest/gtest.h>

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
  void kill() override {
    received_ += server_->counts().received;
    server_.reset();
  }
  void revive() override { start(where_); }
  std::uint64_t requests() override { return received_ + server_->counts().received; }

 private:
  void start(const std::string& where) {
    auto server =
        meet::EmbeddedServer::start({.listen = {where}, .token = token_, .detect = detect_});
    if (!server) ADD_FAILURE() << server.error().text();
    if (server) server_ = std::move(*server);
  }

  std::string where_;
  std::uint64_t received_ = 0;
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
  void kill() override { server_.kill(); }
  void revive() override { server_.start(); }

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
  void kill() override { server_.kill(); }
  void revive() override { server_.start(); }
  std::uint64_t requests() override { return server_.queries(); }

 private:
  std::string token_;
  std::chrono::milliseconds detect_;
  TcpStoreServer server_{kDialect};
};

template <class Place>
std::unique_ptr<RunningPlace> start(const std::string& token, std::chrono::milliseconds detect) {
  return std::make_unique<Place>(token, detect);
}

}  // namespace

const std::vector<PlaceKind>& placeKinds() {
  static const std::vector<PlaceKind> kinds{
      {"embedded", &start<RunningEmbedded>, 4096},
      {"etcd",
       [](const std::string& token, std::chrono::milliseconds detect) {
         return EtcdServer::whyAbsent().empty() ? start<RunningEtcd>(token, detect) : nullptr;
       },
       256},  // each has a lease and a thread
      {"tcpstore1", &start<RunningTcpStore<meet::tcpstore::Dialect::kFirst>>, 4096},
      {"tcpstore2", &start<RunningTcpStore<meet::tcpstore::Dialect::kSecond>>, 4096},
  };
  return kinds;
}

}  // namespace viaduct::testing
