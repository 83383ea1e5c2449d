#include "meet/etcd/gateway.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "meet/etcd/base64.h"

namespace viaduct::meet::etcd {
namespace {

using nlohmann::json;

constexpr std::size_t kShown = 160;  // of an answer that makes no sense

std::string dump(const json& value) {
  // What a person gave, a password for one, need not be UTF-8; dump() would throw.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string number(std::int64_t value) { return fmt::format("{}", value); }

json rangeJson(const KeyRange& range) {
  json out{{"key", toBase64(range.key)}};
  if (!range.end.empty()) out["range_end"] = toBase64(range.end);
  return out;
}

json compareJson(const Compare& compare) {
  using What = Compare::What;
  json out{{"key", toBase64(compare.key)}, {"result", "EQUAL"}};
  Revision revision = compare.revision;
  if (compare.what == What::kCreatedAfter) out["result"] = "GREATER";
  if (compare.what == What::kModifiedUpTo) {
    out["result"] = "LESS";
    ++revision;
  }
  const bool created = compare.what == What::kCreatedAt || compare.what == What::kCreatedAfter;
  out["target"] = created ? "CREATE" : "MOD";
  out[created ? "create_revision" : "mod_revision"] = number(revision);
  return out;
}

json opJson(const TxnOp& op) {
  json body = rangeJson(op.range);
  switch (op.kind) {
    case TxnOp::Kind::kPut:
      body["value"] = toBase64(op.value);
      if (op.lease != 0) body["lease"] = number(op.lease);
      return {{"request_put", std::move(body)}};
    case TxnOp::Kind::kDelete:
      return {{"request_delete_range", std::move(body)}};
    case TxnOp::Kind::kGet:
      break;
  }
  return {{"request_range", std::move(body)}};
}

json opsJson(const std::vector<TxnOp>& ops) {
  json out = json::array();
  for (const TxnOp& op : ops) out.push_back(opJson(op));
  return out;
}

Error nonsense(std::string_view what, std::string_view body) {
  return {.code = Code::kProtocol,
          .operation = "etcd",
          .detail = fmt::format("{} is malformed: {}", what, excerpt(body)),
          .cause = "another service answers there, or a proxy is in between",
          .remedy = "check it with curl -L URL/version"};
}

// The member of an object, or null: of anything else as well.
const json& at(const json& value, const char* name) {
  static const json null;
  if (!value.is_object()) return null;
  const auto found = value.find(name);
  return found == value.end() ? null : *found;
}

// proto3's JSON: absent is 0, 64-bit numbers are strings.
bool read(const json& value, std::int64_t& into) {
  if (value.is_null()) return true;
  if (value.is_number_integer()) {
    into = value.get<std::int64_t>();
    return true;
  }
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), into);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

bool read(const json& value, bool& into) {
  if (value.is_null()) return true;
  if (!value.is_boolean()) return false;
  into = value.get<bool>();
  return true;
}

bool readBytes(const json& value, std::string& into) {
  if (value.is_null()) return true;
  if (!value.is_string()) return false;
  auto bytes = fromBase64(value.get_ref<const std::string&>());
  if (!bytes) return false;
  into = *std::move(bytes);
  return true;
}

bool readText(const json& value, std::string& into) {
  if (value.is_string()) into = value.get<std::string>();
  return value.is_null() || value.is_string();
}

bool read(const json& value, KeyValue& into) {
  return value.is_object() && readBytes(at(value, "key"), into.key) &&
         readBytes(at(value, "value"), into.value) &&
         read(at(value, "create_revision"), into.created) &&
         read(at(value, "mod_revision"), into.modified) && read(at(value, "lease"), into.lease);
}

bool readList(const json& value, auto&& one) {
  if (value.is_null()) return true;
  if (!value.is_array()) return false;
  for (const json& item : value)
    if (!one(item)) return false;
  return true;
}

bool read(const json& value, WatchEvent& into) {
  std::string type;
  if (!readText(at(value, "type"), type) || !read(at(value, "kv"), into.kv)) return false;
  into.deleted = type == "DELETE";
  return into.deleted || type.empty() || type == "PUT";
}

bool read(const json& value, TxnReply& into) {
  const auto kv = [&](const json& item) { return read(item, into.found.emplace_back()); };
  return value.is_object() && read(at(value, "succeeded"), into.succeeded) &&
         read(at(at(value, "header"), "revision"), into.revision) &&
         readList(at(value, "responses"), [&](const json& response) {
           return readList(at(at(response, "response_range"), "kvs"), kv);
         });
}

bool read(const json& value, WatchMessage& into) {
  std::int64_t range = 0;
  const bool ok =
      value.is_object() && read(at(value, "created"), into.created) &&
      read(at(value, "canceled"), into.cancelled) && read(at(value, "watch_id"), range) &&
      read(at(value, "compact_revision"), into.compacted) &&
      read(at(at(value, "header"), "revision"), into.revision) &&
      readText(at(value, "cancel_reason"), into.reason) &&
      readList(at(value, "events"),
               [&](const json& item) { return read(item, into.events.emplace_back()); });
  // We number ranges from 1; a watch that etcd refuses to open has -1.
  into.range = range > 0 ? static_cast<std::size_t>(range - 1) : 0;
  return ok;
}

// Something of a body that has to be an object.
template <class T, class Read>
Result<T> parse(std::string_view what, std::string_view body, Read&& reader) {
  const json value = json::parse(body, nullptr, false);
  T out{};
  if (!value.is_object() || !reader(value, out)) return nonsense(what, body);
  return out;
}

}  // namespace

std::string excerpt(std::string_view body) {
  std::string out = "\"";
  for (const char c : body.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '.';
  return out + (body.size() > kShown ? "\"..." : "\"");
}

KeyRange prefix(std::string key) {
  std::string end = key;
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::move(key), std::move(end)};
}

std::string toJson(const Txn& txn) {
  json compares = json::array();
  for (const Compare& compare : txn.when) compares.push_back(compareJson(compare));
  return dump({{"compare", std::move(compares)},
               {"success", opsJson(txn.then)},
               {"failure", opsJson(txn.otherwise)}});
}

Result<TxnReply> parseTxn(std::string_view body) {
  return parse<TxnReply>("the answer to a transaction", body,
                         [](const json& value, TxnReply& out) { return read(value, out); });
}

std::string grantJson(LeaseId id, std::int64_t seconds) {
  return dump({{"ID", number(id)}, {"TTL", number(seconds)}});
}

std::string leaseJson(LeaseId id) { return dump({{"ID", number(id)}}); }

std::string authJson(std::string_view user, std::string_view password) {
  return dump({{"name", user}, {"password", password}});
}

Result<std::int64_t> parseGrant(std::string_view body) {
  return parse<std::int64_t>(
      "the answer to a lease's grant", body,
      [](const json& value, std::int64_t& out) { return read(at(value, "TTL"), out) && out > 0; });
}

Result<std::int64_t> parseKeepAlive(std::string_view body) {
  return parse<std::int64_t>("the answer to a lease's keepalive", body,
                             [](const json& value, std::int64_t& out) {
                               const json& result = at(value, "result");
                               return result.is_object() && read(at(result, "TTL"), out);
                             });
}

Result<std::string> parseToken(std::string_view body) {
  auto token =
      parse<std::string>("the answer to a login", body, [](const json& value, std::string& out) {
        return readText(at(value, "token"), out) && !out.empty();
      });
  // It becomes a line of a header; and it is a secret, so that the error must not show the body.
  if (!token || token->find_first_of("\r\n") != std::string::npos)
    return nonsense("the answer to a login", "");
  return token;
}

std::string watchJson(const std::vector<KeyRange>& ranges, const std::vector<Revision>& from) {
  std::string out;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    json create = rangeJson(ranges[i]);
    create["start_revision"] = number(from[i]);
    create["watch_id"] = number(static_cast<std::int64_t>(i + 1));
    out += dump({{"create_request", std::move(create)}});
  }
  return out;
}

Result<WatchMessage> parseWatch(std::string_view line) {
  return parse<WatchMessage>("a line of a watch", line, [](const json& value, WatchMessage& out) {
    return read(at(value, "result"), out);
  });
}

std::optional<Refusal> parseRefusal(std::string_view body) {
  const json value = json::parse(body, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  // A stream's error is an object, {"error":{"grpc_code":14,"message":...}}; others are flat.
  const json& nested = at(value, "error");
  const json& refusal = nested.is_object() ? nested : value;
  std::int64_t code = 0;
  Refusal out;
  if (!read(at(refusal, nested.is_object() ? "grpc_code" : "code"), code) || code <= 0 ||
      code > 1000 || !readText(at(refusal, "message"), out.message))
    return std::nullopt;
  out.code = static_cast<int>(code);
  return out;
}

}  // namespace viaduct::meet::etcd
