#include "contract/meeting_places.h"

#include <gtest/gtest.h>

#include "meet/groups/server.h"
#include "support/etcd_server.h"

namespace viaduct::testing {
namespace {

class RunningEmbedded final : public RunningPlace {
 public:
  RunningEmbedded(const std::string& token, std::chrono::milliseconds detect)
      : token_(token), detect_(detect) {
    auto server = meet::EmbeddedServer::start({.token = token, .detect = detect});
    if (!server) ADD_FAILURE() << server.error().text();
    if (server) server_ = std::move(*server);
  }
  meet::PlaceOptions options() const override {
    return {.where = server_->addresses().front(), .token = token_, .detect = detect_};
  }

 private:
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

 private:
  std::string token_;
  std::chrono::milliseconds detect_;
  EtcdServer server_;
};

template <class Place>
std::unique_ptr<RunningPlace> start(const std::string& token, std::chrono::milliseconds detect) {
  return std::make_unique<Place>(token, detect);
}

}  // namespace

const std::vector<PlaceKind>& placeKinds() {
  static const std::vector<PlaceKind> kinds{
      {"embedded", &start<RunningEmbedded>},
      {"etcd",
       [](const std::string& token, std::chrono::milliseconds detect) {
         return EtcdServer::whyAbsent().empty() ? start<RunningEtcd>(token, detect) : nullptr;
       }},
  };
  return kinds;
}

}  // namespace viaduct::testing
