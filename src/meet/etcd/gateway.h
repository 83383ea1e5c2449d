// The requests and answers of etcd's JSON gateway, as types. A malformed answer is an error, never
// a crash. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::meet::etcd {

inline constexpr std::string_view kRangePath = "/v3/kv/range";
inline constexpr std::string_view kTxnPath = "/v3/kv/txn";
inline constexpr std::string_view kWatchPath = "/v3/watch";
inline constexpr std::string_view kGrantPath = "/v3/lease/grant";
inline constexpr std::string_view kKeepAlivePath = "/v3/lease/keepalive";
inline constexpr std::string_view kRevokePath = "/v3/lease/revoke";
inline constexpr std::string_view kAuthPath = "/v3/auth/authenticate";

using Revision = std::int64_t;
using LeaseId = std::int64_t;

struct KeyValue {
  std::string key = {}, value = {};
  Revision created = 0, modified = 0;
  LeaseId lease = 0;  // 0: none
};

// The request that reads a key.
std::string rangeJson(std::string_view key);
struct KeyReply {
  Revision revision = 0;
  std::optional<KeyValue> found = {};
};
Result<KeyReply> parseRange(std::string_view body);

// Creates a key, unless `tombstone` exists. If the key exists, the reply has its value.
std::string createJson(std::string_view key, std::string_view value, LeaseId lease,
                       std::string_view tombstone);
// Removes a key if it has this lease. Creates `tombstone`, unless it is empty.
std::string undoJson(std::string_view key, LeaseId lease, std::string_view tombstone);
struct CreateReply {
  bool created = false;
  std::optional<KeyValue> found = {};
};
Result<CreateReply> parseCreate(std::string_view body);

std::string grantJson(LeaseId id, std::int64_t seconds);
std::string leaseJson(LeaseId id);  // for keepalive and revoke
std::string authJson(std::string_view user, std::string_view password);
// The seconds that a lease has left after a grant or a keepalive. 0: the lease has expired.
Result<std::int64_t> parseGrant(std::string_view body);
Result<std::int64_t> parseKeepAlive(std::string_view body);
Result<std::string> parseToken(std::string_view body);

// Asks for the changes of a key from a revision on.
std::string watchJson(std::string_view key, Revision from);
struct WatchEvent {
  bool deleted = false;
  KeyValue kv = {};  // for a deleted key: only key and revision
};
struct WatchMessage {
  bool cancelled = false;
  // If not 0: older changes are discarded, so read the key again.
  Revision compacted = 0;
  std::string reason = {};
  std::vector<WatchEvent> events = {};
};
Result<WatchMessage> parseWatch(std::string_view line);

// etcd's description of a failure, from the body of an answer that is not 2xx, or from a line of a
// stream.
struct Refusal {
  int code = 0;  // gRPC's
  std::string message = {};
};
std::optional<Refusal> parseRefusal(std::string_view body);

// The beginning of a malformed answer, for people: one line of printable characters.
std::string excerpt(std::string_view body);

}  // namespace viaduct::meet::etcd
