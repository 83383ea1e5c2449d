#include "device/fake/memory_map.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <utility>

namespace viaduct::fakegpu {
namespace {

constexpr const char* kNameFormat = "fake-cuda:%d:%u";

template <class Map, class Key>
auto lastAtOrBelow(Map& map, Key key) {
  const auto above = map.upper_bound(key);
  return above == map.begin() ? map.end() : std::prev(above);
}

}  // namespace

std::shared_ptr<Memory> Memory::create(int device, std::size_t bytes, CUmemHandleType types) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), kNameFormat, device, static_cast<unsigned>(types));
  const int file = ::memfd_create(name.data(), MFD_CLOEXEC);
  if (file < 0) return nullptr;
  std::shared_ptr<Memory> made(new Memory(file, device, bytes, types, false));
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
  return made;
}

std::shared_ptr<Memory> Memory::adopt(int file) {
  std::array<char, 128> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  struct stat facts = {};
  int device = 0;
  unsigned types = 0;
  if (::readlink(link.c_str(), name.data(), name.size() - 1) <= 0 || ::fstat(file, &facts) != 0 ||
      std::sscanf(name.data(), "/memfd:fake-cuda:%d:%u", &device, &types) != 2)
    return nullptr;
  return std::shared_ptr<Memory>(new Memory(file, device, static_cast<std::size_t>(facts.st_size),
                                            static_cast<CUmemHandleType>(types), true));
}

Memory::~Memory() { ::close(file_); }

bool Memory::exportsAs(CUmemHandleType type) const {
  return (static_cast<unsigned>(types_) & static_cast<unsigned>(type)) != 0;
}

Block& MemoryMap::add(Block block) {
  block.id = nextId();
  const CUdeviceptr start = block.start;
  return blocks_.insert_or_assign(start, std::move(block)).first->second;
}

const Block* MemoryMap::find(CUdeviceptr address) const {
  const auto at = lastAtOrBelow(blocks_, address);
  return at != blocks_.end() && address - at->first < at->second.bytes ? &at->second : nullptr;
}

Block* MemoryMap::find(CUdeviceptr address) {
  return const_cast<Block*>(std::as_const(*this).find(address));
}

bool MemoryMap::addHost(std::uintptr_t start, const HostRange& range) {
  if (touchesHost(start, range.bytes)) return false;
  hosts_[start] = range;
  hosts_[start].id = nextId();
  return true;
}

const HostRange* MemoryMap::findHost(std::uintptr_t address, std::uintptr_t* start) const {
  const auto at = lastAtOrBelow(hosts_, address);
  if (at == hosts_.end() || address - at->first >= at->second.bytes) return nullptr;
  if (start != nullptr) *start = at->first;
  return &at->second;
}

bool MemoryMap::touchesHost(std::uintptr_t start, std::size_t bytes) const {
  const auto next = hosts_.lower_bound(start);
  return (next != hosts_.end() && next->first < start + bytes) || findHost(start) != nullptr;
}

bool isHostMemory(std::uintptr_t start, std::size_t bytes, bool write) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return true;
  std::array<char, 1024> line{};
  std::uintptr_t covered = start;
  while (covered < start + bytes && std::fgets(line.data(), line.size(), maps) != nullptr) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char read_right = '-';
    char write_right = '-';
    if (std::sscanf(line.data(), "%" SCNxPTR "-%" SCNxPTR " %c%c", &from, &to, &read_right,
                    &write_right) != 4)
      continue;
    const bool usable = read_right == 'r' && (!write || write_right == 'w');
    if (usable && from <= covered && covered < to) covered = to;
  }
  std::fclose(maps);
  return covered >= start + bytes;
}

}  // namespace viaduct::fakegpu
