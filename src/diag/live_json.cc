// Writes and reads the live facts in a snapshot.
#include "diag/live.h"

namespace viaduct::host {

void describe(auto& json, base::Is<InterfaceAddress> auto& address) {
  json.need("interface", address.interface);
  json.need("address", address.address);
  json.need("prefix", address.prefix);
}

void describe(auto& json, base::Is<LinkFacts> auto& link) {
  json.need("name", link.name);
  json.keep("mtu", link.mtu);
  json.keep("dropped", link.dropped);
  json.keep("shaper", link.shaper);
  json.keep("shaped_bytes_per_s", link.shaped_bytes_per_s);
}

}  // namespace viaduct::host

namespace viaduct::diag {

// These types and their describe() are not in the anonymous namespace, where argument-dependent
// lookup would miss them.
struct NamedTry {
  std::string name = {};
  Tried tried = {};
};
struct Grown {
  std::string path = {};
  std::uint64_t by = 0;
};

void describe(auto& json, base::Is<Tried> auto& tried) {
  json.need("ok", tried.ok);
  json.need("text", tried.text);
}
void describe(auto& json, base::Is<Live::Library> auto& library) {
  json.need("name", library.name);
  json.need("path", library.path);
  json.keep("version", library.version);
}
void describe(auto& json, base::Is<PathFacts> auto& path) {
  json.need("path", path.path);
  json.need("opened", path.opened);
  json.keep("kind", path.kind);
  json.keep("mount", path.mount);
  json.keep("source", path.source);
  json.keep("read_only", path.read_only);
  json.keep("bytes", path.bytes);
  json.keep("free", path.free);
  json.may("direct", path.direct);
  json.keep("offset_multiple", path.offset_multiple);
  json.keep("memory_multiple", path.memory_multiple);
  json.keep("virtio_features", path.virtio_features);
}
void describe(auto& json, base::Is<StoreFacts> auto& store) {
  json.need("endpoint", store.endpoint);
  json.need("bucket", store.bucket);
  json.word("ended", store.ended, kStoreSteps);
  json.keep("text", store.text);
  json.keep("cause", store.cause);
  json.keep("remedy", store.remedy);
  json.may("clock_off", store.clock_off);
  json.keep("behind", store.behind);
}
void describe(auto& json, base::Is<NamedTry> auto& named) {
  json.need("name", named.name);
  json.need("tried", named.tried);
}
void describe(auto& json, base::Is<Grown> auto& grown) {
  json.need("path", grown.path);
  json.need("by", grown.by);
}

namespace {

void describeLive(auto& json, auto& live, auto& names, auto& grown) {
  json.keep("hostname", live.hostname);
  json.keep("kernel", live.kernel);
  json.keep("machine", live.machine);
  json.may("uid", live.uid);
  json.may("ipc_namespace", live.ipc_namespace);
  json.may("pid_namespace", live.pid_namespace);
  json.may("copy", live.copy);
  json.may("io_uring", live.io_uring);
  json.may("io_uring_buffers", live.io_uring_buffers);
  json.may("shm_bytes", live.shm_bytes);
  json.may("shm_free", live.shm_free);
  json.may("aes_gcm", live.aes_gcm);
  json.may("chacha", live.chacha);
  json.may("ipsec_mb", live.ipsec_mb);
  json.may("aes_instructions", live.aes_instructions);
  json.may("clock", live.clock);
  json.may("kernel_log", live.kernel_log);
  json.keep("addresses", live.addresses);
  json.keep("links", live.links);
  json.keep("libraries", live.libraries);
  json.keep("one_file", live.one_file);
  json.keep("names", names);
  json.keep("grown", grown);
  json.keep("seconds", live.seconds);
  json.keep("paths", live.paths);
  json.keep("stores", live.stores);
}

}  // namespace

base::Json asJson(const Live& live) {
  std::vector<NamedTry> names;
  std::vector<Grown> grown;
  names.reserve(live.names.size());
  grown.reserve(live.grown.size());
  for (const auto& [name, tried] : live.names) names.push_back({name, tried});
  for (const auto& [path, by] : live.grown) grown.push_back({path, by});
  base::JsonWriter to;
  describeLive(to, live, names, grown);
  return to.json();
}

Result<Live> liveFromJson(const base::Json& json) {
  Live out;
  std::vector<NamedTry> names;
  std::vector<Grown> grown;
  base::JsonReader from(json);
  describeLive(from, out, names, grown);
  VIADUCT_CHECK(from.status("doctor", "viaduct/live.json"));
  for (NamedTry& one : names) out.names.emplace(std::move(one.name), std::move(one.tried));
  for (Grown& one : grown) out.grown.emplace(std::move(one.path), one.by);
  return out;
}

}  // namespace viaduct::diag
