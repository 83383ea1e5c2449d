// Implements NixlAgent's calls about backends, files and objects.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/file_error.h"
#include "base/lists.h"
#include "base/log.h"
#include "nixl/agent.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

std::optional<Parameters> factsOfFile(const std::string& metadata) {
  const auto named = namedFile(metadata);
  const std::string& path = named ? named->path : metadata;
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) == 0)
    return Parameters{{"size", fmt::to_string(facts.st_size)},
                      {"mode", fmt::to_string(facts.st_mode)},
                      {"mtime", fmt::to_string(facts.st_mtim.tv_sec)}};
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  fail(Outcome::kBackend, base::fileError("query_memory", errno, path).text());
}

}  // namespace

// The calls about backends follow.

std::vector<Memory> NixlAgent::networkMemories() const {
  std::vector<Memory> out;
  for (const BackendInfo& backend : agent_->backends())
    for (const MemoryKind kind : backend.memory)
      if (const Memory memory = memoryOf(kind);
          backend.open && !isStorage(kind) && !base::contains(out, memory))
        out.push_back(memory);
  return out;
}

std::vector<Memory> NixlAgent::memoriesOf(const Plugin& plugin) const {
  return plugin.isNetwork() ? networkMemories() : std::vector{Memory::kDram, plugin.memory};
}

std::uint64_t NixlAgent::createBackend(std::string_view plugin, const Parameters& parameters) {
  need("create_backend");
  const Plugin& wanted = pluginOf(plugin);
  if (!base::contains(backends_, &wanted)) {
    if (!wanted.isNetwork()) openStorage(wanted, parameters);
    backends_.push_back(&wanted);
  }
  const auto found = std::find(backends_.begin(), backends_.end(), &wanted);
  return static_cast<std::uint64_t>(found - backends_.begin()) + 1;
}

void NixlAgent::openStorage(const Plugin& plugin, const Parameters& parameters) {
  std::string bucket = bucketOf(plugin, parameters);
  if (plugin.memory == Memory::kObject && bucket.empty())
    fail(Outcome::kInvalid,
         fmt::format("backend {} has no bucket; pass {{\"bucket\": name}} or set "
                     "AWS_DEFAULT_BUCKET",
                     plugin.name));
  if (plugin.name.starts_with("GDS"))
    base::log(base::LogLevel::kInfo,
              "backend {}: files move between disk and host memory through io_uring or threads; "
              "GPUDirect Storage is not used",
              plugin.name);
  if (storages_.contains(plugin.memory)) return;
  auto opened = unlocked(lock_, [&] {
    return StorageAgent::open(plugin.memory, name_, settingsOf(plugin, parameters),
                              std::move(bucket));
  });
  const auto [storage, is_new] = storages_.try_emplace(plugin.memory, valueOf(std::move(opened)));
  if (is_new && events_) watch(storage->second->agent().eventFd());
}

const Plugin& NixlAgent::backend(std::uint64_t handle) const {
  if (handle == 0 || handle > backends_.size())
    fail(Outcome::kInvalid, fmt::format("agent {} has no backend {}; pass a handle that "
                                        "createBackend() returned",
                                        name_, handle));
  return *backends_[handle - 1];
}

std::vector<std::optional<Parameters>> NixlAgent::query(const RegistrationList& list,
                                                        const Plugin& backend) {
  if (backend.isNetwork() || backend.memory != list.memory)
    fail(Outcome::kNotSupported,
         fmt::format("{} cannot look up {}; POSIX, GDS and GDS_MT look up FILE_SEG, and OBJ looks "
                     "up OBJ_SEG (docs/nixl.md)",
                     backend.name, memoryName(list.memory)));
  need("query_memory");
  if (backend.memory == Memory::kFile) return base::mapped(list.texts, factsOfFile);
  const auto storage = storageFor(Memory::kObject, "query_memory");
  const auto sizes = valueOf(unlocked(lock_, [&] { return storage->sizesOf(list.texts); }));
  return base::mapped(sizes, [](const auto& size) -> std::optional<Parameters> {
    if (!size) return std::nullopt;
    return Parameters{{"size", fmt::to_string(*size)}};
  });
}

// The calls about files and objects follow.

const std::shared_ptr<StorageAgent>& NixlAgent::storageFor(Memory memory,
                                                           const char* operation) const {
  const auto found = storages_.find(memory);
  if (found == storages_.end())
    fail(Outcome::kNotSupported,
         fmt::format("{}: {} needs a backend: call create_backend() with {}", operation,
                     memoryName(memory), memory == Memory::kFile ? "POSIX, GDS or GDS_MT" : "OBJ"));
  return found->second;
}

void NixlAgent::registerStorage(const std::vector<MemoryRange>& ranges,
                                const RegistrationList& list) {
  const auto storage = storageFor(list.memory, "register_memory");
  const auto names = list.texts;  // a copy: another thread may change the list
  const auto stored =
      valueOf(unlocked(lock_, [&]() -> Result<std::vector<std::shared_ptr<Stored>>> {
        std::vector<std::shared_ptr<Stored>> all;
        for (std::size_t row = 0; row < ranges.size(); ++row) {
          VIADUCT_TRY(all.emplace_back(), Stored::find(*storage, ranges[row], names[row]));
        }
        return all;
      }));
  // Descriptors tell files and objects apart by the device alone.
  std::map<std::uint64_t, std::shared_ptr<Stored>> named;
  for (std::size_t row = 0; row < ranges.size(); ++row) {
    const std::uint64_t device = ranges[row].device;
    const auto [known, is_new] = named.try_emplace(device, stored[row]);
    if (const auto live = registrations_.lower_bound({list.memory, device, 0, 0});
        is_new && live != registrations_.end() && live->first.memory == list.memory &&
        live->first.device == device)
      known->second = live->second.stored;
    if (known->second->text() != stored[row]->text())
      fail(Outcome::kNotAllowed,
           fmt::format("register_memory: device {} names {} already, and cannot name {} too; use "
                       "another device for each file or object",
                       device, known->second->text(), stored[row]->text()));
  }
  for (std::size_t row = 0; row < ranges.size(); ++row) {
    Registration& here = registrations_[ranges[row]];
    ++here.count;
    // A descriptor that was closed, and opened as another file, means the new file.
    if (!here.stored || !here.stored->isSame(*stored[row])) here.stored = stored[row];
  }
}

std::shared_ptr<Stored> NixlAgent::storedAt(Memory memory, std::uint64_t device,
                                            const Extent& part) const {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  for (auto row = registrations_.upper_bound({memory, device, part.address, kMost});
       row != registrations_.begin();) {
    --row;
    const MemoryRange& here = row->first;
    if (here.memory != memory || here.device != device) break;
    if (part.bytes <= here.bytes && part.address - here.address <= here.bytes - part.bytes)
      return row->second.stored;
  }
  return nullptr;
}

}  // namespace viaduct::nixl
