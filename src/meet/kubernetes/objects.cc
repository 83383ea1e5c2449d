#include "meet/kubernetes/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/printable.h"
#include "meet/kubernetes/names.h"

namespace viaduct::meet::kubernetes {
namespace {

constexpr const char* kAgentKey = "viaduct/agent";
constexpr const char* kValueKey = "viaduct/value";
constexpr const char* kProcessKey = "viaduct/process";
// This number changes with the meaning of a value. Agents with two numbers do not meet.
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kMostMessage = 400;  // shown bytes of the server's own texts

// The types below have the fields of the API, in its words.
struct Pair {
  std::string name = {}, value = {};
};
using Map = std::vector<Pair>;

struct Owner {
  std::string api = "v1", kind = "Pod", name = {}, uid = {};
};
void describe(auto& json, base::Is<Owner> auto& o) {
  json.may("apiVersion", o.api);
  json.may("kind", o.kind);
  json.may("name", o.name);
  json.may("uid", o.uid);
}

struct Metadata {
  std::string name = {}, kube_namespace = {}, uid = {}, version = {};
  Map labels = {}, annotations = {};
  std::vector<Owner> owners = {};
};
void describe(auto& json, base::Is<Metadata> auto& m) {
  json.may("name", m.name);
  json.may("namespace", m.kube_namespace);
  json.may("uid", m.uid);
  json.may("resourceVersion", m.version);
  json.may("labels", m.labels);
  json.may("annotations", m.annotations);
  json.may("ownerReferences", m.owners);
}

struct Spec {
  std::string holder = {}, acquired = {}, renewed = {};
  std::uint32_t seconds = 0, takeovers = 0;
};
void describe(auto& json, base::Is<Spec> auto& s) {
  json.may("holderIdentity", s.holder);
  json.may("leaseDurationSeconds", s.seconds);
  json.may("acquireTime", s.acquired);
  json.may("renewTime", s.renewed);
  json.keep("leaseTransitions", s.takeovers);
}

struct LeaseObject {
  std::string api = {}, kind = {};
  Metadata metadata = {};
  Spec spec = {};
};
void describe(auto& json, base::Is<LeaseObject> auto& l) {
  json.need("apiVersion", l.api);
  json.need("kind", l.kind);
  json.need("metadata", l.metadata);
  json.keep("spec", l.spec);
}

struct SeenMetadata {
  std::string name = {}, version = {};
};
void describe(auto& json, base::Is<SeenMetadata> auto& m) {
  json.may("name", m.name);
  json.need("resourceVersion", m.version);
}
struct SeenObject {
  SeenMetadata metadata = {};
};
void describe(auto& json, base::Is<SeenObject> auto& o) { json.need("metadata", o.metadata); }

struct ListMetadata {
  std::string version = {}, next = {};
};
void describe(auto& json, base::Is<ListMetadata> auto& m) {
  json.need("resourceVersion", m.version);
  json.may("continue", m.next);
}
struct List {
  std::string kind = {};
  ListMetadata metadata = {};
  std::vector<SeenObject> items = {};
};
void describe(auto& json, base::Is<List> auto& l) {
  json.need("kind", l.kind);
  json.need("metadata", l.metadata);
  json.may("items", l.items);
}

struct Details {
  std::string kind = {};
  std::uint32_t retry_after = 0;
};
void describe(auto& json, base::Is<Details> auto& d) {
  json.may("kind", d.kind);
  json.may("retryAfterSeconds", d.retry_after);
}
struct StatusObject {
  std::string kind = {}, reason = {}, message = {};
  std::uint32_t code = 0;
  Details details = {};
};
void describe(auto& json, base::Is<StatusObject> auto& s) {
  json.need("kind", s.kind);
  json.may("reason", s.reason);
  json.may("message", s.message);
  json.may("code", s.code);
  json.may("details", s.details);
}

struct Preconditions {
  std::string uid = {}, version = {};
};
void describe(auto& json, base::Is<Preconditions> auto& p) {
  json.may("uid", p.uid);
  json.may("resourceVersion", p.version);
}
struct DeleteOptions {
  std::string api = "v1", kind = "DeleteOptions";
  Preconditions preconditions = {};
};
void describe(auto& json, base::Is<DeleteOptions> auto& d) {
  json.may("apiVersion", d.api);
  json.may("kind", d.kind);
  json.need("preconditions", d.preconditions);
}

template <class T>
Result<T> read(const base::Json& json) {
  T out{};
  base::JsonReader reader(json);
  if (json.is_object())
    describe(reader, out);
  else
    return Error{.code = Code::kProtocol, .detail = "is no JSON object"};
  VIADUCT_CHECK(reader.status("", ""));
  return out;
}

Error nonsense(std::string_view what, const Error& why, std::string_view body) {
  constexpr std::size_t kShown = 160;
  return {.code = Code::kProtocol,
          .operation = "kubernetes",
          .detail = fmt::format("{} is malformed: {}: \"{}\"", what, why.detail,
                                base::printable(body, kShown)),
          .cause = "another service answers there, or a proxy is in between",
          .remedy = "check it with kubectl get --raw /version"};
}

template <class T>
Result<T> parse(std::string_view what, std::string_view body) {
  auto json = base::parseJson(body);
  if (!json) return nonsense(what, json.error(), body);
  if (json->is_object() && json->contains("items") && (*json)["items"].is_null())
    json->erase("items");  // an empty list in Go's JSON
  auto out = read<T>(*json);
  if (!out) return nonsense(what, out.error(), body);
  return out;
}

const std::string* valueOf(const Map& map, std::string_view name) {
  const auto found = std::ranges::find(map, name, &Pair::name);
  return found == map.end() ? nullptr : &found->value;
}

std::optional<std::string> decodedValue(const std::string* text) {
  const auto bytes = text == nullptr ? std::nullopt : base::fromBase64(*text);
  std::uint8_t version = 0;
  std::string value;
  if (!bytes || !base::unpack(*bytes, version, value) || version != kVersion) return std::nullopt;
  return value;
}

Refusal refusalOf(const StatusObject& status) {
  return {.code = static_cast<long>(status.code),
          .reason = base::printable(status.reason),
          .message = base::printable(status.message, kMostMessage),
          .kind = base::printable(status.details.kind),
          .retry_after = status.details.retry_after};
}

}  // namespace

Result<std::string> leaseJson(const Lease& lease) {
  LeaseObject out{.api = "coordination.k8s.io/v1",
                  .kind = "Lease",
                  .metadata = {.name = lease.name,
                               .kube_namespace = lease.kube_namespace,
                               .uid = lease.uid,
                               .version = lease.version},
                  .spec = {.holder = lease.holder,
                           .acquired = microTime(lease.acquired),
                           .seconds = lease.seconds,
                           .takeovers = lease.takeovers}};
  if (lease.renewed) out.spec.renewed = microTime(*lease.renewed);
  Metadata& metadata = out.metadata;
  metadata.labels = {{kGroupLabel, lease.group_label}, {kNameLabel, lease.name_label}};
  metadata.annotations = {
      {kAgentKey, lease.agent},
      {kValueKey, base::toBase64(base::packed(kVersion, lease.value.value_or("")))}};
  if (!lease.identity.empty()) metadata.annotations.push_back({kProcessKey, lease.identity});
  if (!lease.pod_uid.empty()) metadata.owners = {{.name = lease.pod_name, .uid = lease.pod_uid}};
  std::size_t bytes = 0;
  for (const Pair& one : metadata.annotations) bytes += one.name.size() + one.value.size();
  if (bytes <= kMostAnnotations) return base::dumpJson(base::JsonWriter::of(out), -1);
  return Error{.detail = fmt::format("the value of {} bytes fills {} bytes of annotations; "
                                     "Kubernetes allows {} in an object",
                                     lease.value.value_or("").size(), bytes, kMostAnnotations),
               .remedy = "publish less, such as an address at which the rest can be read"};
}

Result<Lease> parseLease(std::string_view body) {
  VIADUCT_TRY(LeaseObject from, parse<LeaseObject>("a Lease", body));
  if (from.kind != "Lease" || from.metadata.name.empty() || from.metadata.version.empty())
    return nonsense("a Lease", {.detail = "has another kind, or no name or resourceVersion"}, body);
  const auto label = [&](const char* name) {
    const std::string* const found = valueOf(from.metadata.labels, name);
    return found == nullptr ? std::string() : *found;
  };
  const auto annotation = [&](const char* name) {
    const std::string* const found = valueOf(from.metadata.annotations, name);
    return found == nullptr ? std::string() : *found;
  };
  return Lease{.name = std::move(from.metadata.name),
               .kube_namespace = std::move(from.metadata.kube_namespace),
               .uid = std::move(from.metadata.uid),
               .version = std::move(from.metadata.version),
               .group_label = label(kGroupLabel),
               .name_label = label(kNameLabel),
               .agent = annotation(kAgentKey),
               .value = decodedValue(valueOf(from.metadata.annotations, kValueKey)),
               .holder = std::move(from.spec.holder),
               .identity = annotation(kProcessKey),
               .seconds = from.spec.seconds,
               .takeovers = from.spec.takeovers,
               .acquired = parseMicroTime(from.spec.acquired).value_or(WallTime{}),
               .renewed = parseMicroTime(from.spec.renewed)};
}

std::string deleteJson(const Lease& lease) {
  const DeleteOptions out{.preconditions = {.uid = lease.uid, .version = lease.version}};
  return base::dumpJson(base::JsonWriter::of(out), -1);
}

Result<LeasePage> parsePage(std::string_view body) {
  VIADUCT_TRY(List from, parse<List>("a list of Leases", body));
  if (from.kind != "LeaseList")
    return nonsense("a list of Leases", {.detail = "has another kind"}, body);
  LeasePage out{.version = std::move(from.metadata.version), .next = std::move(from.metadata.next)};
  for (SeenObject& one : from.items)
    out.leases.push_back({std::move(one.metadata.name), std::move(one.metadata.version)});
  return out;
}

std::optional<Refusal> parseRefusal(std::string_view body) {
  const auto json = base::parseJson(body);
  if (!json) return std::nullopt;
  const auto status = read<StatusObject>(*json);
  if (!status || status->kind != "Status") return std::nullopt;
  return refusalOf(*status);
}

Result<WatchEvent> parseEvent(std::string_view line) {
  constexpr const char* kWhat = "a line of a watch";
  const auto json = base::parseJson(line);
  if (!json) return nonsense(kWhat, json.error(), line);
  // A refused watch has the refusal itself for its only line.
  if (auto refusal = parseRefusal(line)) return WatchEvent{.refusal = std::move(refusal)};
  const auto type = json->is_object() ? json->find("type") : json->end();
  const auto object = json->is_object() ? json->find("object") : json->end();
  if (!json->is_object() || type == json->end() || !type->is_string() || object == json->end())
    return nonsense(kWhat, {.detail = "has no type or no object"}, line);
  const auto& word = type->get_ref<const std::string&>();
  if (word == "ERROR") {
    const auto status = read<StatusObject>(*object);
    if (!status) return nonsense(kWhat, status.error(), line);
    return WatchEvent{.refusal = refusalOf(*status)};
  }
  const auto seen = read<SeenObject>(*object);
  if (!seen) return nonsense(kWhat, seen.error(), line);
  WatchEvent out{.deleted = word == "DELETED",
                 .bookmark = word == "BOOKMARK",
                 .lease = {seen->metadata.name, seen->metadata.version}};
  const bool known = out.deleted || out.bookmark || word == "ADDED" || word == "MODIFIED";
  if (known && (out.bookmark || !out.lease.name.empty())) return out;
  return nonsense(kWhat, {.detail = "has an unknown type, or an object without a name"}, line);
}

}  // namespace viaduct::meet::kubernetes
