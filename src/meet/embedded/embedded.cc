#include "meet/embedded/embedded.h"

#include <fmt/format.h>

#include <utility>

#include "base/net/address.h"
#include "meet/embedded/client.h"
#include "meet/embedded/server.h"

namespace viaduct::meet {
namespace {

namespace wire = embedded;

class EmbeddedEntry final : public Entry {
 public:
  EmbeddedEntry(std::shared_ptr<wire::DirectoryClient> names, std::uint32_t request)
      : names_(std::move(names)), request_(request) {}
  ~EmbeddedEntry() override { names_->withdraw(request_); }
  EmbeddedEntry(const EmbeddedEntry&) = delete;
  EmbeddedEntry& operator=(const EmbeddedEntry&) = delete;

 private:
  std::shared_ptr<wire::DirectoryClient> names_;
  std::uint32_t request_;
};

class EmbeddedPlace final : public MeetingPlace {
 public:
  EmbeddedPlace(wire::SitePtr site, std::unique_ptr<EmbeddedServer> server,
                std::chrono::milliseconds patience)
      : site_(std::move(site)),
        names_(std::make_shared<wire::DirectoryClient>(site_)),
        server_(std::move(server)),
        patience_(patience) {}
  // The others may still be saying goodbye.
  ~EmbeddedPlace() override {
    if (server_) server_->drained(patience_);
  }
  EmbeddedPlace(const EmbeddedPlace&) = delete;
  EmbeddedPlace& operator=(const EmbeddedPlace&) = delete;

  std::string text() const override { return "embedded " + site_->where; }

  Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                      const StopFlag& stop) override {
    auto group = std::make_unique<wire::GroupClient>(site_);
    VIADUCT_CHECK(group->join(request, until, stop));
    return std::unique_ptr<Group>(std::move(group));
  }
  Result<std::unique_ptr<Entry>> publish(const std::string& name, const std::string& value,
                                         Deadline until) override {
    VIADUCT_TRY(const std::uint32_t request, names_->publish(name, value, until));
    return std::unique_ptr<Entry>(std::make_unique<EmbeddedEntry>(names_, request));
  }
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop) override {
    return names_->find(name, until, stop);
  }

 private:
  wire::SitePtr site_;
  std::shared_ptr<wire::DirectoryClient> names_;
  std::unique_ptr<EmbeddedServer> server_;
  std::chrono::milliseconds patience_;
};

// A number is listened on as it stands. A name is what the others call this host, and perhaps
// nobody knows it yet: all interfaces.
std::vector<std::string> whereToListen(const base::HostPort& where, const std::string& text) {
  if (base::isLiteral(where) || where.host == "localhost") return {text};
  return {fmt::format("0.0.0.0:{}", where.port), fmt::format("[::]:{}", where.port)};
}

Error startFailed(Error why, const std::string& where) {
  why.detail = fmt::format("the server for meeting place {}: {}", where, why.detail);
  return why;
}

}  // namespace

Result<std::unique_ptr<MeetingPlace>> openEmbedded(const PlaceOptions& options) {
  VIADUCT_TRY(const auto where, base::parseHostPort(options.where));
  if (where.port == 0 || where.host == "*")
    return Error{
        .operation = "meeting place",
        .detail = fmt::format("\"{}\" is no address that members can go to", options.where),
        .remedy = "give the host and port at which all reach it"};
  std::unique_ptr<EmbeddedServer> server;
  if (options.serve) {
    auto started = EmbeddedServer::start({.listen = whereToListen(where, options.where),
                                          .token = options.token,
                                          .insecure = options.insecure,
                                          .detect = options.detect});
    if (!started) return startFailed(std::move(started).error(), options.where);
    server = std::move(*started);
  }
  auto site = std::make_shared<wire::Site>();
  site->where = options.where;
  site->name_space = options.name_space.empty() ? "/viaduct" : options.name_space;
  site->token = base::secretFromText(options.token);
  VIADUCT_TRY(site->loop, wire::Loop::start("viaduct meeting"));
  return std::unique_ptr<MeetingPlace>(
      std::make_unique<EmbeddedPlace>(std::move(site), std::move(server), options.detect));
}

}  // namespace viaduct::meet
