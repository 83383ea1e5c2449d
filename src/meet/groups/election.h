// Groups at a place that only stores values. The members elect one member, whose process runs an
// embedded server, and meet there. Threads: see meet/groups/group.h.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "meet/groups/group.h"
#include "meet/groups/server.h"
#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet::groups {

// The key of an elected server, which is withdrawn when the server's group has ended. Threads: any.
class ServerKey {
 public:
  void hold(std::unique_ptr<PublishedName> key);
  void over();   // the group has ended; also before hold()
  void letGo();  // withdraws the key, and returns when no call of Claim::lost follows

 private:
  struct State {
    std::unique_ptr<PublishedName> key = {};
    bool over = false;
  };
  base::Guarded<State> state_;
};

// A server in this process, and the key by which other members find it.
struct ElectedServer {
  std::unique_ptr<EmbeddedServer> server = {};
  std::shared_ptr<ServerKey> key = {};  // withdrawn before `server` ends

  ElectedServer() = default;
  ElectedServer(ElectedServer&&) = default;
  ElectedServer& operator=(ElectedServer&& other) noexcept {
    letGo();
    key = std::move(other.key);
    server = std::move(other.server);
    return *this;
  }
  ElectedServer(const ElectedServer&) = delete;
  ElectedServer& operator=(const ElectedServer&) = delete;
  ~ElectedServer() { letGo(); }

 private:
  void letGo() {
    if (key) key->letGo();
  }
};

// The data that all groups of one meeting place share.
class Electorate {
 public:
  // `options`: those of the place, whose text for people is `text`.
  Electorate(std::unique_ptr<MeetingPlace> place, PlaceOptions options, std::string text)
      : place_(std::move(place)), options_(std::move(options)), text_(std::move(text)) {}
  // Members that have not said goodbye still need a server in this process. Waits for them, 5 s at
  // most.
  ~Electorate();
  Electorate(const Electorate&) = delete;
  Electorate& operator=(const Electorate&) = delete;

  MeetingPlace& place() const { return *place_; }
  const PlaceOptions& options() const { return options_; }
  const std::string& text() const { return text_; }
  // Keeps the server after its member has left the group, while other members need it.
  void outlive(ElectedServer server, std::string member);

 private:
  const std::unique_ptr<MeetingPlace> place_;
  const PlaceOptions options_;
  const std::string text_;
  struct Leftover {
    std::string member = {};
    ElectedServer its = {};
  };
  base::Guarded<std::vector<Leftover>> leftovers_;
};

Result<std::unique_ptr<Group>> joinElected(const std::shared_ptr<Electorate>& electorate,
                                           const JoinRequest& request, Clock::time_point until,
                                           const StopFlag& stop);

}  // namespace viaduct::meet::groups
