#include "backends/file/file_cache.h"

#include <cerrno>
#include <utility>

namespace viaduct::file {

Result<std::uint32_t> FileCache::use(const OpenedFile& file, std::uint32_t hint) {
  std::uint32_t place = hint;
  if (place >= entries_.size() || !entries_[place].fd || entries_[place].id != file.id) {
    const auto known = places_.find(file.id);
    place = known == places_.end() ? leastUsed() : known->second;
    if (known == places_.end()) {
      if (entries_[place].users != 0)
        return Error{.code = Code::kBusy, .operation = "open", .file = file.path};
      close(place);
      auto fd = file.reopen();
      if (!fd) return std::move(fd).error();
      entries_[place] = {.id = file.id, .fd = *std::move(fd)};
      entries_[place].fixed = engine_.registerFile(place, entries_[place].fd.get());
      places_[file.id] = place;
    }
  }
  ++entries_[place].users;
  entries_[place].used_at = ++uses_;
  return place;
}

std::uint32_t FileCache::leastUsed() const {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < entries_.size(); ++i) {
    const Entry& one = entries_[i];
    const Entry& other = entries_[best];
    if (std::pair(one.users != 0, one.used_at) < std::pair(other.users != 0, other.used_at))
      best = i;
  }
  return best;
}

void FileCache::close(std::uint32_t place) {
  Entry& entry = entries_[place];
  if (!entry.fd) return;
  if (entry.fixed) engine_.unregisterFile(place);
  places_.erase(entry.id);
  entry = {};
}

void FileCache::forget(const FileId& id) {
  const auto known = places_.find(id);
  if (known != places_.end() && entries_[known->second].users == 0) close(known->second);
}

}  // namespace viaduct::file
