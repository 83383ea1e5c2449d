#include "backends/file/file_cache.h"

#include <memory>
#include <utility>

namespace viaduct::file {

std::optional<std::uint32_t> FileCache::use(const OpenedFile& file, std::uint32_t hint) {
  std::uint32_t place = hint;
  if (place >= entries_.size() || !entries_[place].fd || entries_[place].id != file.id) {
    const auto known = places_.find(file.id);
    place = known == places_.end() ? leastUsed() : known->second;
    if (known == places_.end()) {
      if (entries_[place].users != 0) return std::nullopt;
      close(place);
      entries_[place] = {.id = file.id};
      places_[file.id] = place;
    }
  }
  CachedFile& entry = entries_[place];
  if (entry.opening) return std::nullopt;
  entry.opening = !entry.fd;
  ++entry.users;
  entry.used_at = ++uses_;
  return place;
}

void FileCache::opened(std::uint32_t place, base::Fd fd) {
  CachedFile& entry = entries_[place];
  entry.opening = false;
  --entry.users;
  entry.fd = std::move(fd);
  if (entry.fd)
    entry.fixed = engine_.registerFile(place, entry.fd.get());
  else
    close(place);
}

std::uint32_t FileCache::leastUsed() const {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < entries_.size(); ++i) {
    const CachedFile& one = entries_[i];
    const CachedFile& other = entries_[best];
    if (std::pair(one.users != 0, one.used_at) < std::pair(other.users != 0, other.used_at))
      best = i;
  }
  return best;
}

void FileCache::close(std::uint32_t place) {
  CachedFile& entry = entries_[place];
  if (entry.fixed) engine_.unregisterFile(place);
  if (entry.used_at != 0) places_.erase(entry.id);
  // On a thread, because a close may wait for a file server.
  if (entry.fd)
    engine_.call(Engine::kNoToken, [fd = std::make_shared<base::Fd>(std::move(entry.fd))] {
      fd->reset();
      return 0;
    });
  entry = {};
}

void FileCache::forget(const FileId& id) {
  const auto known = places_.find(id);
  if (known != places_.end() && entries_[known->second].users == 0) close(known->second);
}

}  // namespace viaduct::file
