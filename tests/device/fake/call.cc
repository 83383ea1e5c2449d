#include "device/fake/call.h"

#include <unistd.h>

namespace viaduct::fakegpu {

World& world() {
  static World& one = *new World;
  return one;
}

std::vector<Context*>& contextStack() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

bool& inHostFunction() {
  static thread_local bool inside = false;
  return inside;
}

std::atomic<std::uint64_t>& callsAfterFork() {
  static std::atomic<std::uint64_t> calls = 0;
  return calls;
}

bool forked(const World& world) {
  const bool in_child = world.process != 0 && world.process != ::getpid();
  if (in_child) ++callsAfterFork();
  return in_child;
}

CUresult admit(World& world, const char* call) {
  const CUresult planned = world.faults.count(call);
  if (planned != CUresult::kSuccess) return planned;
  if (world.process == 0) return CUresult::kNotInitialized;
  return inHostFunction() ? CUresult::kNotPermitted : CUresult::kSuccess;
}

}  // namespace viaduct::fakegpu
