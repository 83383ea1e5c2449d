#include "meet/embedded/embedded.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/net/address.h"
#include "meet/embedded/client.h"

namespace viaduct::meet {
namespace {

namespace wire = embedded;

class EmbeddedName final : public PublishedName {
 public:
  EmbeddedName(std::shared_ptr<wire::DirectoryClient> names, std::uint32_t request)
      : names_(std::move(names)), request_(request) {}
  ~EmbeddedName() override { names_->withdraw(request_); }
  EmbeddedName(const EmbeddedName&) = delete;
  EmbeddedName& operator=(const EmbeddedName&) = delete;

 private:
  std::shared_ptr<wire::DirectoryClient> names_;
  std::uint32_t request_;
};

class EmbeddedPlace final : public MeetingPlace {
 public:
  explicit EmbeddedPlace(wire::SitePtr site)
      : site_(std::move(site)), names_(std::make_shared<wire::DirectoryClient>(site_)) {}

  std::string text() const override { return "embedded " + site_->where; }

  Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                      const StopFlag& stop) override {
    auto group = std::make_unique<wire::GroupClient>(site_);
    VIADUCT_CHECK(group->join(request, until, stop));
    return std::unique_ptr<Group>(std::move(group));
  }
  Result<std::unique_ptr<PublishedName>> publish(const std::string& name, const std::string& value,
                                                 Deadline until) override {
    VIADUCT_TRY(const std::uint32_t request, names_->publish(name, value, until));
    return std::unique_ptr<PublishedName>(std::make_unique<EmbeddedName>(names_, request));
  }
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop) override {
    return names_->find(name, until, stop);
  }

 private:
  wire::SitePtr site_;
  std::shared_ptr<wire::DirectoryClient> names_;
};

// True if the address belongs to this host, because it can be bound.
bool isOwn(base::SocketAddress address) {
  address.setPort(0);
  const auto socket = base::streamSocket(address.family());
  return socket && ::bind(socket->get(), address.get(), address.size) == 0;
}

// Returns the addresses to listen on for `where`, or none if the name belongs to another host. A
// literal address or localhost is used unchanged. This host's own name, or one that does not
// resolve yet, means all interfaces. The reason is that other hosts may resolve it differently
// (Debian maps a host's own name to 127.0.1.1).
Result<std::vector<std::string>> whereToListen(const PlaceOptions& options) {
  VIADUCT_TRY(const auto where, base::parseHostPort(options.where));
  if (base::isLiteral(where) || where.host == "localhost") return std::vector{options.where};
  const auto known = base::resolve(where);
  if (known && std::none_of(known->begin(), known->end(), &isOwn))
    return std::vector<std::string>{};
  // An unresolved name may turn out to be another host's, so that is no reason to ask for a token.
  if (!known && options.token.empty() && !options.insecure) return std::vector<std::string>{};
  return everyInterface(where.port);
}

}  // namespace

std::vector<std::string> everyInterface(std::uint16_t port) {
  std::vector<std::string> out;
  for (const auto* any : {"0.0.0.0", "::"}) {
    const std::string text = base::hostPortText(any, port);
    const auto where = base::parseHostPort(text);
    const auto addresses = where ? base::resolve(*where) : where.error();
    // isOwn() is false for "::" if the host lacks IPv6.
    if (addresses && isOwn(addresses->front())) out.push_back(text);
  }
  return out;
}

Result<std::unique_ptr<MeetingPlace>> openEmbedded(const PlaceOptions& options) {
  VIADUCT_TRY(const auto where, base::parseHostPort(options.where));
  if (where.port == 0 || where.host == "*")
    return Error{
        .operation = "meeting place",
        .detail = fmt::format("\"{}\" is not an address that members can reach", options.where),
        .remedy = "give a host and port that all members can reach"};
  auto site = std::make_shared<wire::Site>();
  site->where = options.where;
  site->addresses = {options.where};
  site->name_space = options.name_space.empty() ? "/viaduct" : options.name_space;
  site->token = base::secretFromText(options.token);
  site->waiting = options.waiting;
  VIADUCT_TRY(site->loop, base::Loop::start("viaduct meeting"));
  return std::unique_ptr<MeetingPlace>(std::make_unique<EmbeddedPlace>(std::move(site)));
}

Result<std::unique_ptr<EmbeddedServer>> serveIfHere(const PlaceOptions& options) {
  VIADUCT_TRY(auto listen, whereToListen(options));
  if (listen.empty()) return std::unique_ptr<EmbeddedServer>();
  auto server = EmbeddedServer::start({.listen = std::move(listen),
                                       .token = options.token,
                                       .insecure = options.insecure,
                                       .detect = options.detect});
  if (server) return server;
  Error why = std::move(server).error();
  if (why.os_errno == EADDRNOTAVAIL || why.os_errno == EADDRINUSE)
    return std::unique_ptr<EmbeddedServer>();
  why.operation = fmt::format("serve meeting place {}: {}", options.where, why.operation);
  return why;
}

}  // namespace viaduct::meet
