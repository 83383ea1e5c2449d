// Hand-made observations for tests of the verdicts. Threads: plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/proof/observation.h"

namespace viaduct::measure::proof {

inline constexpr std::uint64_t kGB = 1'000'000'000;
inline constexpr std::uint64_t kGbit = kGB / 8;

// One member on a host of its own. Its row takes one second.
class Seen {
 public:
  explicit Seen(const std::string& host) {
    it_.place.hostname = host;
    it_.place.boot_id = "boot of " + host;
    it_.place.network = "net:[1]";
    it_.quiet.at_ns = kGB;
    it_.before.at_ns = it_.quiet.at_ns + 5'000'000;
    it_.after.at_ns = it_.before.at_ns + kGB;
    device("lo", host::DeviceKind::kLoopback, 0, 0, 0);
  }
  Seen& device(const std::string& name, host::DeviceKind kind, std::uint64_t rate,
               std::uint64_t sent, std::uint64_t received) {
    it_.place.devices.push_back({.name = name, .kind = kind, .link_bytes_per_s = rate});
    constexpr std::uint64_t kStart = kGB;
    it_.quiet.counters.push_back({name, kStart, kStart, 1});
    it_.before.counters.push_back({name, kStart, kStart, 1});
    it_.after.counters.push_back({name, kStart + sent, kStart + received, 1});
    return *this;
  }
  Seen& ethernet(const std::string& name, std::uint64_t rate, std::uint64_t sent,
                 std::uint64_t received) {
    return device(name, host::DeviceKind::kEthernet, rate, sent, received);
  }
  Seen& rdma(const std::string& name, std::uint64_t rate, std::uint64_t sent,
             std::uint64_t received) {
    return device(name, host::DeviceKind::kRdma, rate, sent, received);
  }
  Seen& loopback(std::uint64_t bytes) {
    it_.after.counters.front().sent += bytes;
    it_.after.counters.front().received += bytes;
    return *this;
  }
  // Sets the bytes that others moved on the last device in the 5 ms before the row.
  Seen& others(std::uint64_t bytes) {
    it_.quiet.counters.back().sent -= bytes;
    it_.quiet.counters.back().received -= bytes;
    return *this;
  }
  Seen& counting(std::uint64_t before, std::uint64_t after, std::uint32_t unit) {
    for (host::Counter* c : {&it_.quiet.counters.back(), &it_.before.counters.back()})
      c->sent = c->received = before, c->unit = unit;
    it_.after.counters.back() = {it_.place.devices.back().name, after, after, unit};
    return *this;
  }
  Seen& silentCounters() {
    for (Reading* r : {&it_.quiet, &it_.before, &it_.after}) r->counters.clear();
    return *this;
  }
  Seen& rails(std::vector<std::string> names) {
    it_.place.rails = std::move(names);
    return *this;
  }
  Seen& address(const std::string& text) {
    it_.place.devices.back().addresses.push_back(text);
    return *this;
  }
  Seen& lower(std::vector<std::string> parts) {
    it_.place.devices.back().lower = std::move(parts);
    return *this;
  }
  Seen& slot(std::uint64_t rate) {
    it_.place.devices.back().pcie_bytes_per_s = rate;
    it_.place.devices.back().pcie = "8.0 GT/s x8";
    return *this;
  }
  Seen& on(const std::string& boot, const std::string& network) {
    it_.place.boot_id = boot;
    it_.place.network = network;
    return *this;
  }
  // Sets when the member's kernel started, by its clock and by /proc/stat.
  Seen& started(double by_clock, double by_stat) {
    it_.place.kernel = {by_clock, by_stat};
    return *this;
  }
  Seen& process(std::uint8_t number) {
    it_.place.process = {number};
    return *this;
  }
  Seen& memory(double gb_per_s) {
    it_.place.memory = {2, gb_per_s / 2, {{1 << 20, gb_per_s * 3}, {64 << 20, gb_per_s}}};
    return *this;
  }
  Seen& claims(std::uint32_t peer, const std::vector<PathShare>& shares,
               OpKind op = OpKind::kWrite) {
    it_.claims.push_back({.peer = peer, .op = op, .path = {shares}});
    return *this;
  }
  Seen& gpu(std::uint32_t device, const std::string& id, const std::string& doubt = "") {
    it_.place.gpus.push_back({device, id, "GPU " + id, doubt});
    return *this;
  }
  // Adds a copy rate that this member has measured. Small copies get three times `gb_per_s`.
  Seen& gpuRate(const std::string& from, const std::string& to, double gb_per_s) {
    it_.place.gpu_rates.push_back({from, to, {{1 << 20, gb_per_s * 3}, {64 << 20, gb_per_s}}});
    return *this;
  }
  Seen& gpuRateFailed(const std::string& from, const std::string& to, const std::string& why) {
    it_.place.gpu_rates.push_back({from, to, {}, why});
    return *this;
  }
  // Sets the numbers of the devices at both ends of the last claim.
  Seen& between(std::uint32_t device, std::uint32_t far_device) {
    it_.claims.back().device = device;
    it_.claims.back().far_device = far_device;
    return *this;
  }
  // Adds a claim of transfers between the member and its own storage.
  Seen& stored(const std::vector<PathShare>& shares, OpKind op = OpKind::kWrite) {
    it_.claims.push_back({.op = op, .path = {shares}, .stored = true});
    return *this;
  }
  // Sets the bytes that the kernel counts for the process, and at the disk below its files.
  Seen& disk(std::uint64_t read, std::uint64_t written) {
    it_.before.disk = {1000, 2000};
    it_.after.disk = {1000 + read, 2000 + written};
    return storage({"ext4", "vda"}, read, written);
  }
  // Sets the storage of the member's files to the given layers, top first. The lowest layer counts
  // bytes unless it is memory.
  Seen& storage(std::vector<std::string> layers, std::uint64_t read, std::uint64_t written) {
    const std::string lowest = layers.back();
    const bool in_memory = lowest == "tmpfs";
    it_.place.storage = {{.layers = std::move(layers), .in_memory = in_memory}};
    if (in_memory) return *this;
    it_.place.storage[0].devices = {lowest};
    it_.before.devices = {{lowest, {500, 600}}};
    it_.after.devices = {{lowest, {500 + read, 600 + written}}};
    return *this;
  }
  // Sets netlink's count of the last device, if it should differ from the counter.
  Seen& netlink(std::optional<host::LinkBytes> after) {
    netlink_[it_.place.devices.back().name] = after;
    return *this;
  }
  operator Observation() const {
    Observation out = it_;
    for (Reading* reading : {&out.quiet, &out.before, &out.after})
      for (host::Counter& one : reading->counters)
        one.netlink = host::LinkBytes{one.sent, one.received};
    for (host::Counter& one : out.after.counters)
      if (const auto forged = netlink_.find(one.device); forged != netlink_.end())
        one.netlink = forged->second;
    return out;
  }

 private:
  Observation it_;
  std::map<std::string, std::optional<host::LinkBytes>> netlink_;
};

}  // namespace viaduct::measure::proof
