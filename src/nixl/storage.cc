#include "nixl/storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/lists.h"
#include "base/stored_file.h"
#include "base/text.h"

namespace viaduct::nixl {
namespace {

constexpr auto kOperation = "register_memory";
// Objects that are looked up at the same time, as many as the backend has connections.
constexpr std::size_t kLooksAtOnce = 16;

Error misuse(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = kOperation,
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

Status apply(const StorageAgent::Values& values, Settings& into) {
  for (const auto& [variable, text] : values)
    for (const SettingRow& row : settingRows()) {
      if (row.variable != variable) continue;
      if (auto parsed = row.parse(text, into); !parsed)
        return Error{.code = Code::kInvalid,
                     .operation = "create_backend",
                     .detail = fmt::format("{} cannot be {}", variable, text),
                     .remedy = fmt::format("give {}", parsed.error().remedy)};
    }
  return Ok{};
}

// Runs `call(i)` for each i below `count`, on several threads. Returns the first error.
template <class Call>
Status inParallel(std::size_t count, std::size_t most, const Call& call) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status first = Ok{};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      Status done = call(i);
      if (done) continue;
      next = count;
      const std::lock_guard held(mutex);
      if (first) first = std::move(done);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(count, most); ++i) {
    try {
      threads.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the process has too many threads already; those that exist do the rest
    }
  }
  work();
  for (std::thread& thread : threads) thread.join();
  return first;
}

std::string identityOf(const base::StoredFile& stored, const Segment& file) {
  return fmt::format("{}:{}:{}:{}:{}", stored.device, stored.inode, static_cast<int>(file.access),
                     file.sync, stored.generation);
}

// Without O_NONBLOCK, the call would wait for the other end of a FIFO.
base::Fd openToLook(const std::string& path, bool read_only, int flags = 0) {
  return base::Fd(
      ::open(path.c_str(), (read_only ? O_RDONLY : O_RDWR) | flags | O_CLOEXEC | O_NONBLOCK, 0644));
}

// Whether a segment still names the file with this identity.
bool isStill(const std::string& identity, const Segment& file) {
  base::Fd opened;
  if (file.fd < 0) opened = openToLook(file.path, file.access == MemoryAccess::kReadOnly);
  const auto stored = base::storedFile(kOperation, file.fd < 0 ? opened.get() : file.fd, file.path);
  return stored && identityOf(*stored, file) == identity;
}

using Found = Stored::Identified;

Result<Found> openNamed(const NamedFile& named, const std::string& metadata) {
  constexpr std::array kOptions{"direct", "sync", "noatime", "create"};
  for (const std::string& word : std::span(named.words).subspan(1))
    if (!base::contains(kOptions, word))
      return misuse(fmt::format("\"{}\": the option {} is unknown", metadata, word),
                    "use ro or rw, and direct, sync, noatime, create");
  if (named.path.empty())
    return misuse(fmt::format("\"{}\" names no file", metadata), "use \"rw,create:/path\"");
  const FileOptions how{.read_only = named.words[0] == "ro",
                        .sync = base::contains(named.words, "sync")};
  const base::Fd fd =
      openToLook(named.path, how.read_only, base::contains(named.words, "create") ? O_CREAT : 0);
  if (!fd) return base::fileError(kOperation, errno, named.path);
  VIADUCT_TRY(const auto stored, base::storedFile(kOperation, fd.get(), named.path));
  const auto file = Segment::file(named.path, how);
  return Found{file, named.path, identityOf(stored, file)};
}

Result<Found> findDescriptor(std::uint64_t device) {
  const std::string text = fmt::format("the descriptor {}", device);
  const bool fits = device <= std::numeric_limits<int>::max();
  const int fd = fits ? static_cast<int>(device) : -1;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0)
    return misuse(fmt::format("{} is not open", text),
                  "keep a file open as long as its descriptor is registered");
  VIADUCT_TRY(const auto stored,
              base::storedFile(kOperation, fd, fmt::format("descriptor {}", fd)));
  const bool read_only = (flags & O_ACCMODE) == O_RDONLY;
  const auto file = Segment::file(fd, {.read_only = read_only, .borrow = true});
  return Found{file, text, identityOf(stored, file)};
}

Result<Found> findRow(const StorageAgent& agent, std::uint64_t device,
                      const std::string& metadata) {
  if (agent.memory() == Memory::kObject) {
    Segment object = agent.object(metadata.empty() ? std::to_string(device) : metadata, {});
    const std::string url = object.path;
    return Found{std::move(object), url, url};
  }
  const auto named = namedFile(metadata);
  return named ? openNamed(*named, metadata) : findDescriptor(device);
}

}  // namespace

std::optional<NamedFile> namedFile(const std::string& metadata) {
  const auto colon = metadata.find(':');
  auto words = base::partsOf(metadata.substr(0, colon), ',');
  if (colon == std::string::npos || words.empty() || (words[0] != "ro" && words[0] != "rw"))
    return std::nullopt;
  return NamedFile{std::move(words), metadata.substr(colon + 1)};
}

Result<std::shared_ptr<StorageAgent>> StorageAgent::open(Memory memory, const std::string& name,
                                                         const Values& values, std::string bucket) {
  const char* const backend = memory == Memory::kFile ? "file" : "object";
  VIADUCT_TRY(Settings settings, settingsFromEnvironment());
  settings.name = fmt::format("{:.200}.{}", name, backend);
  settings.listen = {};
  settings.meet = {};
  settings.rails = {};
  settings.backends = {backend};
  for (const BackendFacts& facts : backendFacts())  // for VRAM at the other side
    if (facts.gpus) settings.backends.emplace_back(facts.name);
  VIADUCT_CHECK(apply(values, settings));
  VIADUCT_TRY(Agent agent, Agent::open(settings));
  VIADUCT_TRY(Peer self, agent.self());
  return std::make_shared<StorageAgent>(std::move(agent), std::move(self), memory,
                                        std::move(bucket));
}

Status StorageAgent::pinMemory(std::shared_ptr<const std::vector<Region>> regions) {
  const std::lock_guard held(memory_mutex_);
  if (regions == last_pinned_) return Ok{};
  left_out_.reset();
  std::set<std::uint32_t> serials;
  for (const Region& region : *regions) {
    if (!hasAddresses(region.memory)) continue;
    serials.insert(region.serial);
    if (memory_pins_.contains(region.serial)) continue;
    auto pin = agent_.pin(segmentOf(region));
    if (!pin) {
      left_out_ = std::move(pin).error();
      continue;
    }
    memory_pins_.emplace(region.serial, *std::move(pin));
  }
  // Another thread may have deregistered memory while this thread pinned it.
  std::erase_if(memory_pins_, [&](const auto& one) { return !serials.contains(one.first); });
  last_pinned_ = std::move(regions);
  return Ok{};
}

Status StorageAgent::unpinMemory(std::uint32_t serial) {
  const std::lock_guard held(memory_mutex_);
  const auto found = memory_pins_.find(serial);
  if (found == memory_pins_.end()) return Ok{};
  Pin pin = std::move(found->second);
  memory_pins_.erase(found);
  return pin.release();
}

// The storage is the local side, so a write to storage is a read for the transfer.
Result<Transfer> StorageAgent::plan(bool write, const Selection& stored, const Selection& host,
                                    Priority priority) {
  auto planned = agent_.plan(write ? OpKind::kRead : OpKind::kWrite, self_, stored, host,
                             {.priority = priority});
  const std::lock_guard held(memory_mutex_);
  if (!planned && left_out_) return *left_out_;
  return planned;
}

Result<std::vector<std::optional<std::uint64_t>>> StorageAgent::sizesOf(
    std::span<const std::string> keys) {
  std::vector<std::optional<std::uint64_t>> sizes(keys.size());
  VIADUCT_CHECK(inParallel(keys.size(), kLooksAtOnce, [&](std::size_t i) -> Status {
    const auto pin = agent_.pin(object(keys[i], {}));
    if (pin) {
      sizes[i] = pin->size();
      return Ok{};
    }
    const Error& why = pin.error();
    if (why.code == Code::kInvalid && why.detail == "the object is empty") sizes[i] = 0;
    const bool absent =
        why.code == Code::kNotFound && why.detail.find("NoSuchBucket") == std::string::npos;
    if (!sizes[i] && !absent) return why;
    return Ok{};
  }));
  return sizes;
}

Result<std::shared_ptr<Stored>> Stored::find(const StorageAgent& agent, const MemoryRange& row,
                                             const std::string& metadata) {
  if (row.bytes == 0 || row.address + row.bytes < row.address)
    return misuse(
        fmt::format("device {}: {} bytes at offset {}", row.device, row.bytes, row.address),
        "register at least one byte, and an end below 2^64");
  VIADUCT_TRY(Identified found, findRow(agent, row.device, metadata));
  return std::make_shared<Stored>(std::move(found));
}

Status Stored::checkAccess(bool write) const {
  if (withdrawn_)
    return Error{.code = Code::kNotFound,
                 .operation = "transfer",
                 .detail = fmt::format("{} was deregistered", found_.text),
                 .remedy = "register it, and prepare its descriptors again"};
  const bool is_file = found_.segment.kind != MemoryKind::kObject;
  if (is_file && !held_.pin && !isStill(found_.identity, found_.segment))
    return Error{
        .code = Code::kNotFound,
        .operation = "transfer",
        .detail = fmt::format("{} is not the file any more that was registered", found_.text),
        .cause = "the descriptor was closed, or the file was replaced or removed",
        .remedy = "deregister a file before you close it"};
  if (!write || found_.segment.access == MemoryAccess::kReadWrite) return Ok{};
  return Error{.code = Code::kDenied,
               .operation = "transfer",
               .detail = fmt::format("{} is open for reading only", found_.text),
               .remedy = "open it with O_RDWR, or register \"rw:path\""};
}

Result<Stored::Held> Stored::reach(StorageAgent& agent, const Extent& part, bool write) {
  std::unique_lock held(mutex_);
  VIADUCT_CHECK(checkAccess(write));
  Segment wanted = found_.segment;
  const std::uint64_t end = part.address + part.bytes;
  if (wanted.kind == MemoryKind::kObject) {
    // A new pin for each transfer, because another program may replace the object at any time.
    held.unlock();
    const std::uint64_t first = write ? 0 : part.address;
    wanted.create = write;
    wanted.fd_offset = first;
    wanted.bytes = end - first;
    VIADUCT_TRY(Pin pin, agent.agent().pin(wanted));
    held.lock();
    VIADUCT_CHECK(checkAccess(write));  // another thread may have deregistered the object
    return remember(std::move(pin), first);
  }
  if (held_.pin && part.address >= held_.first && end <= held_.first + held_.pin->size())
    return held_;
  const std::uint64_t first = held_.pin ? std::min(held_.first, part.address) : part.address;
  wanted.create = write;
  wanted.fd_offset = first;
  wanted.bytes = (held_.pin ? std::max(end, held_.first + held_.pin->size()) : end) - first;
  VIADUCT_TRY(Pin pin, agent.agent().pin(wanted));
  held_ = remember(std::move(pin), first);
  return held_;
}

Stored::Held Stored::remember(Pin pin, std::uint64_t first) {
  std::erase_if(pins_, [](const auto& one) { return one.expired(); });
  auto shared = std::make_shared<Pin>(std::move(pin));
  pins_.push_back(shared);
  return {std::move(shared), first};
}

void Stored::drop() {
  const std::lock_guard held(mutex_);
  held_ = {};
}

Status Stored::withdraw() {
  std::vector<std::weak_ptr<Pin>> pins;
  Held last;
  {
    const std::lock_guard held(mutex_);
    withdrawn_ = true;
    last = std::exchange(held_, {});
    pins = std::exchange(pins_, {});
  }
  Status status = Ok{};
  for (const auto& one : pins) {
    const auto pin = one.lock();
    Status released = pin ? pin->release() : Ok{};
    if (!released && status) status = std::move(released);
  }
  return status;
}

bool Stored::isWithdrawn() const {
  const std::lock_guard held(mutex_);
  return withdrawn_;
}

Result<Reached> reachAll(StorageAgent& agent, std::span<const Extent> parts,
                         std::span<const std::shared_ptr<Stored>> stored, bool write) {
  // Pins each file or object once, from its first to its last selected byte.
  std::vector<std::pair<Stored*, Extent>> needed;
  std::unordered_map<const Stored*, std::size_t> places;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [place, is_new] = places.try_emplace(stored[i].get(), needed.size());
    if (is_new) needed.emplace_back(stored[i].get(), parts[i]);
    Extent& whole = needed[place->second].second;
    const std::uint64_t end =
        std::max(whole.address + whole.bytes, parts[i].address + parts[i].bytes);
    whole.address = std::min(whole.address, parts[i].address);
    whole.bytes = end - whole.address;
  }
  std::vector<Stored::Held> held(needed.size());
  const std::size_t threads = agent.memory() == Memory::kObject && !write ? kLooksAtOnce : 1;
  VIADUCT_CHECK(inParallel(needed.size(), threads, [&](std::size_t i) -> Status {
    VIADUCT_TRY(held[i], needed[i].first->reach(agent, needed[i].second, write));
    return Ok{};
  }));
  Rows blocks;
  blocks.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Stored::Held& one = held[places[stored[i].get()]];
    blocks.add(Extent{one.pin->info().address + (parts[i].address - one.first), parts[i].bytes}, 0);
  }
  Reached reached;
  VIADUCT_TRY(const Prepared prepared, Prepared::of(blocks));
  VIADUCT_TRY(reached.blocks, prepared.select({}, write));
  for (Stored::Held& one : held) reached.pins.push_back(std::move(one.pin));
  return reached;
}

}  // namespace viaduct::nixl
