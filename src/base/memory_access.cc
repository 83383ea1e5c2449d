#include "base/memory_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/fd.h"

namespace viaduct::base {
namespace {

// Copied here because <linux/fs.h> has it only since Linux 6.11.
struct MappingQuery {
  std::uint64_t size = sizeof(MappingQuery);
  std::uint64_t flags = 0, address = 0;  // input
  std::uint64_t start = 0, end = 0, allowed = 0;
  std::uint64_t page_bytes = 0, offset = 0, inode = 0;
  std::uint32_t major = 0, minor = 0, name_bytes = 0, build_id_bytes = 0;
  std::uint64_t name = 0, build_id = 0;
};
constexpr unsigned long kAskMapping = _IOWR('f', 17, MappingQuery);
constexpr std::uint64_t kOrNext = 0x10, kReadable = 1, kWritable = 2;

// Accepts the mappings of a range in the order of their addresses.
class Range {
 public:
  Range(std::uint64_t address, std::uint64_t bytes) : at_(address), end_(address + bytes) {}

  std::uint64_t at() const { return at_; }  // the range's earlier bytes are readable
  bool complete() const { return at_ >= end_; }
  // Takes the next mapping. False: this mapping ends the search.
  bool take(std::uint64_t start, std::uint64_t end, bool readable, bool writable) {
    if (end <= at_) return true;
    if (start > at_ || !readable) return false;
    at_ = end;
    writable_ = writable_ && writable;
    return !complete();
  }
  Result<MemoryAccess> access() const {
    if (complete()) return writable_ ? MemoryAccess::kReadWrite : MemoryAccess::kReadOnly;
    return Error{.code = Code::kInvalid,
                 .operation = "pin",
                 .detail = fmt::format("the memory at {:#x} is not mapped, or not readable", at_),
                 .cause = "it was unmapped or protected, or the segment is too long",
                 .remedy = "check the address and the length of the segment"};
  }

 private:
  std::uint64_t at_;
  const std::uint64_t end_;
  bool writable_ = true;
};

Fd openList() { return Fd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)); }

// Returns nothing if the kernel does not answer the query, as before Linux 6.11.
std::optional<Result<MemoryAccess>> query(const Fd& list, Range range) {
  for (bool more = true; more;) {
    MappingQuery one;
    one.flags = kOrNext;
    one.address = range.at();
    if (::ioctl(list.get(), kAskMapping, &one) != 0) {
      if (errno == ENOENT) break;  // nothing is mapped from here on
      return std::nullopt;
    }
    more = range.take(one.start, one.end, (one.allowed & kReadable) != 0,
                      (one.allowed & kWritable) != 0);
  }
  return range.access();
}

// Takes a line "7f0000000000-7f0000001000 rw-p ...". False: the line ends the search.
bool takeLine(std::string_view line, Range& range) {
  std::uint64_t start = 0, end = 0;
  const char* const begin = line.data();
  const char* const last = begin + line.size();
  const auto first = std::from_chars(begin, last, start, 16);
  if (first.ptr == last || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, last, end, 16);
  if (last - second.ptr < 4) return false;
  return range.take(start, end, second.ptr[1] == 'r', second.ptr[2] == 'w');
}

Result<MemoryAccess> readList(const Fd& list, Range range) {
  std::array<char, 16 << 10> buffer;
  std::size_t kept = 0;
  for (bool more = true; more;) {
    const ssize_t got = ::read(list.get(), buffer.data() + kept, buffer.size() - kept);
    if (got <= 0) break;
    std::string_view text(buffer.data(), kept + static_cast<std::size_t>(got));
    for (auto end = text.find('\n'); more && end != std::string_view::npos; end = text.find('\n')) {
      more = takeLine(text.substr(0, end), range);
      text.remove_prefix(end + 1);
    }
    kept = text.size() == buffer.size() ? 0 : text.size();  // no line is that long
    std::memmove(buffer.data(), text.data(), kept);
  }
  return range.access();
}

}  // namespace

Result<MemoryAccess> memoryAccess(std::uint64_t address, std::uint64_t bytes) {
  const Fd list = openList();
  if (!list) return MemoryAccess::kReadWrite;
  if (auto answer = query(list, {address, bytes})) return *std::move(answer);
  return readList(list, {address, bytes});
}

Result<MemoryAccess> memoryAccessFromList(std::uint64_t address, std::uint64_t bytes) {
  const Fd list = openList();
  if (!list) return MemoryAccess::kReadWrite;
  return readList(list, {address, bytes});
}

}  // namespace viaduct::base
