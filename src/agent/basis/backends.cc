#include "agent/basis/backends.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "agent/faults/faulty_backend.h"
#include "base/log.h"

namespace viaduct::agent {
namespace {

Error unknownBackend(std::string_view wanted, std::span<const core::BackendEntry> catalogue) {
  std::string names;
  for (const auto& entry : catalogue)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return {.code = Code::kNotFound,
          .operation = "settings: backends",
          .detail = fmt::format("no backend named {} is built in", wanted),
          .remedy = fmt::format("choose one of: {}", names)};
}

void logLeftOut(std::string_view backend, const Error& why) {
  // A machine without the hardware is normal, so that is no warning.
  const bool news = why.code != Code::kUnsupported;
  base::log(news ? base::LogLevel::kWarning : base::LogLevel::kInfo, "backend {} is skipped: {}",
            backend, why.text());
}

BackendInfo infoOf(core::Backend& backend) {
  const core::Capabilities& can = backend.can();
  BackendInfo info{.name = std::string(can.name),
                   .open = true,
                   .text = std::string(backend.description()),
                   .preference = can.preference,
                   .memory = can.memory,
                   .same_host = can.same_host,
                   .rdma = can.rdma,
                   .tcp = can.tcp};
  for (const auto& rail : backend.rails()) info.rails.emplace_back(rail->name());
  return info;
}

}  // namespace

Status Backends::open(const core::BackendContext& context, FaultSource* faults) {
  const auto catalogue = core::backendCatalogue();
  for (const std::string& wanted : context.settings.backends)
    if (std::ranges::find(catalogue, wanted, &core::BackendEntry::name) == catalogue.end())
      return unknownBackend(wanted, catalogue);
  for (const core::BackendEntry& entry : catalogue) VIADUCT_CHECK(openOne(entry, context, faults));
  for (const core::AbsentBackend& absent : core::absentBackends())
    left_out_.push_back(
        {.name = std::string(absent.name), .text = fmt::format("not built in: {}", absent.why)});
  return Ok{};
}

Status Backends::openOne(const core::BackendEntry& entry, const core::BackendContext& context,
                         FaultSource* faults) {
  const auto& list = context.settings.backends;
  const bool named = std::ranges::find(list, entry.name) != list.end();
  const auto leave_out = [&](std::string why) {
    left_out_.push_back({.name = std::string(entry.name), .text = std::move(why)});
    return Ok{};
  };
  if (list.empty() && entry.facts->for_tests) return leave_out("for tests: opened only if named");
  if (!list.empty() && !named) return leave_out("not among the requested backends");
  auto opened = entry.open(context);
  if (!opened && named) return std::move(opened).error();
  if (!opened) {
    logLeftOut(entry.name, opened.error());
    return leave_out(opened.error().text());
  }
  add(faults != nullptr ? withFaults(*std::move(opened), *faults) : *std::move(opened));
  return Ok{};
}

bool Backends::needStages() const {
  return std::ranges::any_of(open_, [](const auto& backend) {
    return backend->storage() != nullptr || backend->deviceMemory() != nullptr ||
           backend->can().pack_below != 0;
  });
}

bool Backends::checksRights(std::string_view name) const {
  return std::ranges::any_of(open_, [name](const auto& backend) {
    return backend->can().name == name && backend->can().checks_rights;
  });
}

std::vector<BackendInfo> Backends::infos() const {
  std::vector<BackendInfo> out;
  out.reserve(open_.size() + left_out_.size());
  for (const auto& backend : open_) out.push_back(infoOf(*backend));
  // Backends of equal preference keep the agent's order.
  std::ranges::stable_sort(out, {}, &BackendInfo::preference);
  out.insert(out.end(), left_out_.begin(), left_out_.end());
  return out;
}

Error Backends::noneTakes(MemoryKind kind) {
  return {.code = Code::kUnsupported,
          .operation = "pin",
          .detail = fmt::format("no open backend takes segments of kind {}", memoryKindName(kind)),
          .remedy = "see Agent::backends()"};
}

std::shared_ptr<core::DeviceMemory> Backends::gpus() const {
  for (const auto& backend : open_)
    if (auto found = backend->deviceMemory()) return found;
  return nullptr;
}

std::vector<std::function<bool()>> Backends::close() {
  std::vector<std::function<bool()>> out;
  for (const auto& backend : open_)
    if (auto settled = backend->close()) out.push_back(std::move(settled));
  open_.clear();
  return out;
}

void Backends::giveUp(std::uint64_t whole) const {
  for (const auto& backend : open_)
    if (const auto storage = backend->storage()) storage->giveUp(whole);
}

}  // namespace viaduct::agent
