// etcd's JSON gateway as typed requests and answers. An answer may hold anything: what it must not
// be is an error, never a crash. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::meet::etcd {

inline constexpr std::string_view kTxnPath = "/v3/kv/txn";
inline constexpr std::string_view kWatchPath = "/v3/watch";
inline constexpr std::string_view kGrantPath = "/v3/lease/grant";
inline constexpr std::string_view kKeepAlivePath = "/v3/lease/keepalive";
inline constexpr std::string_view kRevokePath = "/v3/lease/revoke";
inline constexpr std::string_view kAuthPath = "/v3/auth/authenticate";

using Revision = std::int64_t;
using LeaseId = std::int64_t;

// Keys from `key` up to, not including, `end`; an empty end: that key alone.
struct KeyRange {
  std::string key = {}, end = {};
  bool holds(std::string_view what) const {
    return end.empty() ? what == key : what >= key && what < end;
  }
};
KeyRange prefix(std::string key);

struct KeyValue {
  std::string key = {}, value = {};
  Revision created = 0, modified = 0;
  LeaseId lease = 0;  // 0: none
};

struct Compare {
  enum class What : std::uint8_t {
    kCreatedAt,  // 0: the key is not there
    kModifiedAt,
    kModifiedUpTo,
    kCreatedAfter,  // 0: the key is there
  };
  std::string key = {};
  What what = What::kCreatedAt;
  Revision revision = 0;
};

struct TxnOp {
  enum class Kind { kPut, kGet, kDelete };
  Kind kind = Kind::kGet;
  KeyRange range = {};
  std::string value = {};
  LeaseId lease = 0;

  static TxnOp put(std::string key, std::string value, LeaseId lease) {
    return {Kind::kPut, {std::move(key), {}}, std::move(value), lease};
  }
  static TxnOp get(KeyRange range) { return {Kind::kGet, std::move(range), {}, 0}; }
  static TxnOp erase(KeyRange range) { return {Kind::kDelete, std::move(range), {}, 0}; }
};

struct Txn {
  std::vector<Compare> when = {};
  std::vector<TxnOp> then = {}, otherwise = {};
};
std::string toJson(const Txn& txn);

struct TxnReply {
  bool succeeded = false;
  Revision revision = 0;
  std::vector<KeyValue> found = {};  // what the gets found, one after the other
};
Result<TxnReply> parseTxn(std::string_view body);

std::string grantJson(LeaseId id, std::int64_t seconds);
std::string leaseJson(LeaseId id);  // of keepalive and revoke
std::string authJson(std::string_view user, std::string_view password);
// The seconds that a grant gave, or that a keepalive renewed: 0 when the lease is no more.
Result<std::int64_t> parseGrant(std::string_view body);
Result<std::int64_t> parseKeepAlive(std::string_view body);
Result<std::string> parseToken(std::string_view body);

// One watch over several ranges; the answers name a range by its place in the list.
std::string watchJson(const std::vector<KeyRange>& ranges, const std::vector<Revision>& from);

struct WatchEvent {
  bool deleted = false;
  KeyValue kv = {};  // of a deleted key: key and revision
};
struct WatchMessage {
  bool created = false, cancelled = false;
  std::size_t range = 0;
  Revision revision = 0;
  Revision compacted = 0;  // other than 0: what came before it is gone, read the range again
  std::string reason = {};
  std::vector<WatchEvent> events = {};
};
Result<WatchMessage> parseWatch(std::string_view line);

// etcd's own word for a failure, from the body of an answer that is not 2xx or a line of a stream.
struct Refusal {
  int code = 0;  // gRPC's
  std::string message = {};
};
std::optional<Refusal> parseRefusal(std::string_view body);

// The beginning of an answer that makes no sense, for people: one line without odd bytes.
std::string excerpt(std::string_view body);

}  // namespace viaduct::meet::etcd
