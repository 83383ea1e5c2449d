// Writes and reads the live facts in a snapshot.
#include <cstdlib>

#include "diag/live.h"

namespace viaduct::diag {
namespace {

using base::Json;
using base::JsonReader;

struct Named {
  std::string name = {};
  Tried tried = {};
};
struct Grown {
  std::string path = {};
  std::uint64_t by = 0;
};

Json asJson(const Tried& tried) { return {{"ok", tried.ok}, {"text", tried.text}}; }

template <class T>
void put(Json& to, const char* key, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, Tried>)
    to[key] = asJson(*value);
  else
    to[key] = *value;
}

void read(JsonReader& from, Named& named) {
  from.need("name", named.name);
  from.need("tried", named.tried);
}

void read(JsonReader& from, Grown& grown) {
  from.need("path", grown.path);
  from.need("by", grown.by);
}

}  // namespace

// Outside the anonymous namespace, because argument-dependent lookup does not search there.
static void read(JsonReader& from, Tried& tried) {
  from.need("ok", tried.ok);
  from.need("text", tried.text);
}
static void read(JsonReader& from, Live::Address& address) {
  std::uint32_t prefix = 0;
  from.need("interface", address.interface);
  from.need("address", address.address);
  from.need("prefix", prefix);
  address.prefix = prefix;
}
static void read(JsonReader& from, Live::Library& library) {
  from.need("name", library.name);
  from.need("path", library.path);
  from.may("version", library.version);
}

Json asJson(const Live& live) {
  Json out{{"hostname", live.hostname}, {"kernel", live.kernel}, {"machine", live.machine}};
  put(out, "uid", live.uid);
  put(out, "copy", live.copy);
  put(out, "io_uring", live.io_uring);
  put(out, "shm_bytes", live.shm_bytes);
  put(out, "shm_free", live.shm_free);
  put(out, "clock", live.clock);
  put(out, "kernel_log", live.kernel_log);
  out["addresses"] = Json::array();
  for (const Live::Address& one : live.addresses)
    out["addresses"].push_back(
        {{"interface", one.interface}, {"address", one.address}, {"prefix", one.prefix}});
  out["libraries"] = Json::array();
  for (const Live::Library& one : live.libraries)
    out["libraries"].push_back({{"name", one.name}, {"path", one.path}, {"version", one.version}});
  out["names"] = Json::array();
  for (const auto& [name, tried] : live.names)
    out["names"].push_back({{"name", name}, {"tried", asJson(tried)}});
  out["grown"] = Json::array();
  for (const auto& [path, by] : live.grown) out["grown"].push_back({{"path", path}, {"by", by}});
  out["seconds"] = live.seconds;
  return out;
}

Result<Live> liveFromJson(const Json& json) {
  Live out;
  std::vector<Named> names;
  std::vector<Grown> grown;
  JsonReader from(json);
  from.may("hostname", out.hostname);
  from.may("kernel", out.kernel);
  from.may("machine", out.machine);
  from.may("uid", out.uid);
  from.may("copy", out.copy);
  from.may("io_uring", out.io_uring);
  from.may("shm_bytes", out.shm_bytes);
  from.may("shm_free", out.shm_free);
  from.may("clock", out.clock);
  from.may("kernel_log", out.kernel_log);
  from.may("addresses", out.addresses);
  from.may("libraries", out.libraries);
  from.may("names", names);
  from.may("grown", grown);
  from.may("seconds", out.seconds);
  VIADUCT_CHECK(from.status("doctor", "viaduct/live.json"));
  for (Named& one : names) out.names.emplace(std::move(one.name), std::move(one.tried));
  for (Grown& one : grown) out.grown.emplace(std::move(one.path), one.by);
  return out;
}

}  // namespace viaduct::diag
