#include "meet/etcd/gateway.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/printable.h"

namespace viaduct::meet::etcd {
namespace {

using nlohmann::json;

constexpr std::size_t kShown = 160;        // shown bytes of a malformed answer
constexpr std::size_t kMostMessage = 300;  // shown bytes of etcd's own texts

std::string dump(const json& value) {
  // User input, such as a password, may not be UTF-8; dump() would throw.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string number(std::int64_t value) { return fmt::format("{}", value); }

Error nonsense(std::string_view what, std::string_view body) {
  return {.code = Code::kProtocol,
          .operation = "etcd",
          .detail = fmt::format("{} is malformed: {}", what, excerpt(body)),
          .cause = "another service answers there, or a proxy is in between",
          .remedy = "check it with curl -L URL/version"};
}

json absent(std::string_view key) {
  return json::object({{"key", base::toBase64(key)},
                       {"result", "EQUAL"},
                       {"target", "CREATE"},
                       {"create_revision", "0"}});
}

json put(std::string_view key, std::string_view value, LeaseId lease) {
  const auto fields = json::object(
      {{"key", base::toBase64(key)}, {"value", base::toBase64(value)}, {"lease", number(lease)}});
  return json::object({{"request_put", fields}});
}

// Returns the named member of an object. Returns null if there is no such member, or `value` is no
// object.
const json& at(const json& value, const char* name) {
  static const json null;
  if (!value.is_object()) return null;
  const auto found = value.find(name);
  return found == value.end() ? null : *found;
}

// In the JSON of proto3, 0 is absent, and 64-bit numbers are strings.
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
  auto bytes = base::fromBase64(value.get_ref<const std::string&>());
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

// Reads the first value of the answer to a range.
bool readFirst(const json& range, std::optional<KeyValue>& into) {
  return readList(at(range, "kvs"), [&](const json& item) {
    KeyValue kv;
    if (!read(item, kv)) return false;
    if (!into) into = std::move(kv);
    return true;
  });
}

bool read(const json& value, WatchMessage& into) {
  std::string reason;
  if (!value.is_object() || !readText(at(value, "cancel_reason"), reason)) return false;
  into.reason = base::printable(reason, kMostMessage);
  return read(at(value, "canceled"), into.cancelled) &&
         read(at(value, "compact_revision"), into.compacted) &&
         readList(at(value, "events"),
                  [&](const json& item) { return read(item, into.events.emplace_back()); });
}

// Parses a body, which has to be an object.
template <class T, class Read>
Result<T> parse(std::string_view what, std::string_view body, Read&& reader) {
  const json value = json::parse(body, nullptr, false);
  T out{};
  if (!value.is_object() || !reader(value, out)) return nonsense(what, body);
  return out;
}

}  // namespace

std::string excerpt(std::string_view body) { return "\"" + base::printable(body, kShown) + "\""; }

std::string rangeJson(std::string_view key) { return dump({{"key", base::toBase64(key)}}); }

Result<KeyReply> parseRange(std::string_view body) {
  return parse<KeyReply>("what a key holds", body, [](const json& value, KeyReply& out) {
    return read(at(at(value, "header"), "revision"), out.revision) && readFirst(value, out.found);
  });
}

std::string createJson(std::string_view key, std::string_view value, LeaseId lease,
                       std::string_view tombstone) {
  const auto name = json::object({{"key", base::toBase64(key)}});
  return dump({{"compare", json::array({absent(key), absent(tombstone)})},
               {"success", json::array({put(key, value, lease)})},
               {"failure", json::array({json::object({{"request_range", name}})})}});
}

std::string undoJson(std::string_view key, LeaseId lease, std::string_view tombstone) {
  const auto name = json::object({{"key", base::toBase64(key)}});
  json ours{{"result", "EQUAL"}, {"target", "LEASE"}, {"lease", number(lease)}};
  ours.update(name);
  json always = json::array();
  if (!tombstone.empty()) always.push_back(put(tombstone, "", lease));
  json removal = always;
  removal.push_back(json::object({{"request_delete_range", name}}));
  return dump({{"compare", json::array({ours})}, {"success", removal}, {"failure", always}});
}

Result<CreateReply> parseCreate(std::string_view body) {
  return parse<CreateReply>("the answer to a transaction", body,
                            [](const json& value, CreateReply& out) {
                              return read(at(value, "succeeded"), out.created) &&
                                     readList(at(value, "responses"), [&](const json& response) {
                                       return readFirst(at(response, "response_range"), out.found);
                                     });
                            });
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
  // The token becomes a header line, so it must be one line. It is a secret, so the error must not
  // show the body.
  if (!token || token->find_first_of("\r\n") != std::string::npos)
    return nonsense("the answer to a login", "");
  return token;
}

std::string watchJson(std::string_view key, Revision from) {
  return dump(
      {{"create_request", {{"key", base::toBase64(key)}, {"start_revision", number(from)}}}});
}

Result<WatchMessage> parseWatch(std::string_view line) {
  return parse<WatchMessage>("a line of a watch", line, [](const json& value, WatchMessage& out) {
    return read(at(value, "result"), out);
  });
}

std::optional<Refusal> parseRefusal(std::string_view body) {
  const json value = json::parse(body, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  // An error in a stream is nested, {"error":{"grpc_code":14,"message":...}}. Other errors are
  // flat.
  const json& nested = at(value, "error");
  const json& refusal = nested.is_object() ? nested : value;
  std::int64_t code = 0;
  Refusal out;
  if (!read(at(refusal, nested.is_object() ? "grpc_code" : "code"), code) || code <= 0 ||
      code > 1000 || !readText(at(refusal, "message"), out.message))
    return std::nullopt;
  out.code = static_cast<int>(code);
  out.message = base::printable(out.message, kMostMessage);
  return out;
}

}  // namespace viaduct::meet::etcd
