#include "meet/groups/election.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/loop.h"
#include "base/random.h"
#include "meet/groups/group_client.h"
#include "meet/groups/serve.h"
#include "meet/groups/server_record.h"
#include "meet/groups/server_state.h"

namespace viaduct::meet::groups {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kOutlive{5}, kFarewell{1};
// The pause before a member tries again to reach a server. A new election ends the pause.
constexpr milliseconds kFirstRetry{50}, kLongestRetry{1000};
// The key of a dead server disappears within this time, unless the place has longer leases.
constexpr std::chrono::seconds kOutdated{5};

// The secret that two processes share if they have read the same record and were given the same
// token.
std::string secretOf(const std::string& token, const base::Key& random) {
  std::string out = token + '\n';
  for (const std::uint8_t byte : random) out += fmt::format("{:02x}", byte);
  return out;
}

class ElectedGroup final : public GroupClient {
 public:
  using GroupClient::GroupClient;
  ~ElectedGroup() override {
    leave();
    if (!server_.server) return;
    // If this member leaves without a goodbye, waits until its server has told the other members.
    if (!finished()) server_.server->drained(kFarewell);
    const Roster& all = roster();
    electorate_->outlive(std::move(server_),
                         fmt::format("rank {} ({})", all.rank, all.members[all.rank].name));
  }
  ElectedGroup(const ElectedGroup&) = delete;
  ElectedGroup& operator=(const ElectedGroup&) = delete;

  // Called once the group is complete. `server` is this member's server, if it runs one.
  void keep(std::shared_ptr<Electorate> electorate, ElectedServer server) {
    electorate_ = std::move(electorate);
    server_ = std::move(server);
  }

 private:
  std::shared_ptr<Electorate> electorate_;
  ElectedServer server_;
};

// The attempts of one member to join a group.
class Joining {
 public:
  Joining(const std::shared_ptr<Electorate>& electorate, const JoinRequest& request,
          Clock::time_point until, const StopFlag& stop)
      : electorate_(electorate),
        place_(electorate->place()),
        options_(electorate->options()),
        request_(request),
        until_(until),
        stop_(stop),
        key_(fmt::format("group/{}/head", escaped(request.group))),
        aloud_(options_.waiting, until) {}

  Result<std::unique_ptr<Group>> run();

 private:
  Status elect();
  Result<bool> serve();
  Result<ServerRecord> recordOf(const std::string& value) const;
  Result<std::unique_ptr<ElectedGroup>> dial() const;
  meet::Wait waiting(Clock::time_point until);

  const std::shared_ptr<Electorate>& electorate_;
  MeetingPlace& place_;
  const PlaceOptions& options_;
  const JoinRequest& request_;
  const Clock::time_point until_;
  const StopFlag& stop_;
  const std::string key_;
  base::Waiting aloud_;
  ServerRecord record_;         // the elected server
  MeetingPlace::Held elected_;  // the value of the server's key; nothing: we run the server
  ElectedServer server_;        // if this member runs it
};

meet::Wait Joining::waiting(Clock::time_point until) {
  return {.until = until,
          .stop = &stop_,
          .operation = fmt::format("join group {}", request_.group),
          .missing = fmt::format("{} has not answered yet", electorate_->text()),
          .aloud = &aloud_};
}

Result<std::unique_ptr<Group>> Joining::run() {
  BackOff pauses(kFirstRetry, kLongestRetry);
  for (;;) {
    VIADUCT_CHECK(elect());
    VIADUCT_TRY(auto group, dial());
    const Status joined = group->join(request_, Deadline(until_), stop_);
    if (joined) {
      place_.closeIdle();
      group->keep(electorate_, std::move(server_));
      return std::unique_ptr<Group>(std::move(group));
    }
    const bool unproven = group->unproven();
    if ((!group->displaced() && !unproven) || stop_.load() || Clock::now() >= until_)
      return joined.error();
    group.reset();
    server_ = {};
    // The server is gone or out of reach, or another program has its address. The key shows when
    // another server is elected.
    const Duration pause = unproven ? Duration(kOutdated) : Duration(pauses.next());
    meet::Wait wait = waiting(std::min<Clock::time_point>(until_, Clock::now() + pause));
    wait.missing = joined.error().detail;
    const auto changed = place_.await(
        key_, [this](const MeetingPlace::Held& held) { return held != elected_; }, wait);
    if (!changed && (unproven || Clock::now() >= until_)) return joined.error();
  }
}

// Finds the server of the group, or starts it in this process.
Status Joining::elect() {
  const meet::Wait wait = waiting(until_);
  for (;;) {
    VIADUCT_TRY(auto held, place_.await(key_, [](const auto&) { return true; }, wait));
    if (held) {
      VIADUCT_TRY(record_, recordOf(*held));
      elected_ = std::move(held);
      return Ok{};
    }
    VIADUCT_TRY(const bool ours, serve());
    if (ours) return Ok{};
  }
}

Result<ServerRecord> Joining::recordOf(const std::string& value) const {
  auto record = decodeRecord<ServerRecord>(value);
  if (record) return *std::move(record);
  return Error{.code = Code::kProtocol,
               .operation = fmt::format("join group {}", request_.group),
               .detail = fmt::format("the key {} holds foreign data", key_),
               .cause = "another version of this program, or another program, wrote it",
               .remedy = "use another namespace, or another group name"};
}

// Returns false if another member was elected first.
Result<bool> Joining::serve() {
  ServerRecord record{.name = request_.name};
  VIADUCT_CHECK(base::fillSecret(record.secret));
  ElectedServer mine;
  mine.key = std::make_shared<ServerKey>();
  VIADUCT_TRY(mine.server, EmbeddedServer::start({.listen = everyInterface(0),
                                                  .token = secretOf(options_.token, record.secret),
                                                  .detect = options_.detect,
                                                  .over = [key = mine.key] { key->over(); }}));
  record.addresses = mine.server->addresses();
  record.addresses.resize(std::min(record.addresses.size(), kMaxAddresses));
  const Claim claim{.key = key_,
                    .value = encodeRecord(record),
                    .lost = [server = mine.server.get()](const Error& why) { server->close(why); }};
  VIADUCT_TRY(auto key, place_.claim(claim, waiting(until_)));
  if (!key) return false;
  mine.key->hold(std::move(key));
  record_ = std::move(record);
  elected_.reset();
  server_ = std::move(mine);
  return true;
}

Result<std::unique_ptr<ElectedGroup>> Joining::dial() const {
  const base::Key token = base::secretFromText(secretOf(options_.token, record_.secret));
  VIADUCT_TRY(
      auto server,
      embedded::openSite({.where = fmt::format("{} (in {} at {})", electorate_->text(),
                                               record_.name, fmt::join(record_.addresses, ", ")),
                          .name_space = rootOf(options_),
                          .addresses = record_.addresses,
                          .token = token,
                          .waiting = options_.waiting}));
  return std::make_unique<ElectedGroup>(
      std::move(server), Elected{.server_name = record_.name,
                                 .cipher = std::make_unique<base::Cipher>(base::deriveKey(
                                     token, "what members of a group tell each other"))});
}

}  // namespace

void ServerKey::hold(std::unique_ptr<PublishedName> key) {
  state_.with([&](State& state) {
    state.key = std::move(key);
    if (state.over) state.key->withdrawSoon();
  });
}

void ServerKey::over() {
  state_.with([](State& state) {
    state.over = true;
    if (state.key) state.key->withdrawSoon();
  });
}

void ServerKey::letGo() {
  std::unique_ptr<PublishedName> key;  // destroyed without the lock
  state_.with([&](State& state) { key = std::move(state.key); });
}

void Electorate::outlive(ElectedServer server, std::string member) {
  std::vector<Leftover> over;  // destroyed without the lock
  leftovers_.with([&](std::vector<Leftover>& all) {
    all.push_back({std::move(member), std::move(server)});
    const auto done = std::partition(all.begin(), all.end(), [](const Leftover& one) {
      return !one.its.server->drained(Clock::now());
    });
    std::move(done, all.end(), std::back_inserter(over));
    all.erase(done, all.end());
  });
}

Electorate::~Electorate() {
  const auto until = Clock::now() + kOutlive;
  leftovers_.with([&](std::vector<Leftover>& all) {
    for (const Leftover& one : all)
      if (!one.its.server->drained(until))
        one.its.server->close(
            {.code = Code::kPeerLost,
             .operation = "group",
             .detail = fmt::format("{}, which ran the group's server, has left", one.member),
             .cause = "it said goodbye, and other members did not do so in time",
             .remedy = "let all members finish at about the same time"});
  });
}

Result<std::unique_ptr<Group>> joinElected(const std::shared_ptr<Electorate>& electorate,
                                           const JoinRequest& request, Clock::time_point until,
                                           const StopFlag& stop) {
  VIADUCT_CHECK(checkJoin(request));
  return Joining(electorate, request, until, stop).run();
}

}  // namespace viaduct::meet::groups
