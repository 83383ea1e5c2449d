// Legacy handles, with which another process opens the memory of cuMemAlloc.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "device/fake/allocations.h"
#include "device/fake/call.h"
#include "device/fake/exported.h"

namespace viaduct::fakegpu {

Exported exportOf(const Memory& memory, std::size_t bytes) {
  struct stat facts = {};
  ::fstat(memory.file(), &facts);
  return Exported{Exported::kMark, ::getpid(), memory.file(), facts.st_ino, bytes, memory.device()};
}

// The kernel lets processes of one user open each other's descriptors. The descriptor's number may
// name another file by now, so the inode is compared.
std::shared_ptr<Memory> openExported(const Exported& from) {
  if (from.mark != Exported::kMark) return nullptr;
  const std::string path =
      "/proc/" + std::to_string(from.process) + "/fd/" + std::to_string(from.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat facts = {};
  ::fstat(file, &facts);
  auto memory = Memory::adopt(file);
  if (memory == nullptr) ::close(file);
  return memory != nullptr && facts.st_ino == from.inode ? memory : nullptr;
}

namespace {

bool isOpen(const World& world, const Context& context, const Memory& memory) {
  struct stat wanted = {};
  ::fstat(memory.file(), &wanted);
  for (const auto& [start, block] : world.memory.blocks()) {
    struct stat facts = {};
    ::fstat(block.memory->file(), &facts);
    if (block.kind == BlockKind::kOpened && block.context == &context &&
        facts.st_ino == wanted.st_ino)
      return true;
  }
  return false;
}

CUresult openHandle(World& world, Context& context, const Exported& from, CUdeviceptr* address) {
  if (from.mark != Exported::kMark) return CUresult::kInvalidValue;
  if (from.process == ::getpid()) return CUresult::kInvalidContext;
  auto memory = openExported(from);
  if (memory == nullptr) return CUresult::kInvalidValue;
  if (from.device != context.device && !world.configuration.peers)
    return CUresult::kPeerAccessUnsupported;
  if (isOpen(world, context, *memory)) return CUresult::kAlreadyMapped;
  Block block;
  block.bytes = from.bytes;
  block.kind = BlockKind::kOpened;
  block.context = &context;
  block.memory = std::move(memory);
  return place(world, std::move(block), address);
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return inContext("cuIpcGetMemHandle", [&](World& one, Lock&, Context&) {
    const Block* block = one.memory.find(address);
    if (block == nullptr || block->kind != BlockKind::kAllocated) return CUresult::kInvalidValue;
    const Exported exported = exportOf(*block->memory, block->bytes);
    *handle = CUipcMemHandle{};
    std::memcpy(handle->bytes.data(), &exported, sizeof exported);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle,
                                                unsigned flags) {
  return inContext("cuIpcOpenMemHandle", [&](World& one, Lock&, Context& context) {
    if (flags != kIpcLazyPeerAccess) return CUresult::kInvalidValue;
    Exported from;
    std::memcpy(&from, handle.bytes.data(), sizeof from);
    return openHandle(one, context, from, address);
  });
}

FAKE_CUDA_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return inContext("cuIpcCloseMemHandle", [&](World& one, Lock& lock, Context& context) {
    drain(one, lock);
    const Block* block = one.memory.find(address);
    if (block == nullptr || block->start != address || block->kind != BlockKind::kOpened)
      return CUresult::kInvalidValue;
    removeBlock(one, address);
    return context.failure;
  });
}
// NOLINTEND(readability-identifier-naming)
