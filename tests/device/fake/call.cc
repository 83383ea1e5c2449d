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

bool forked(const World& world) { return world.process != 0 && world.process != ::getpid(); }

CUresult admit(World& world, const char* call) {
  const CUresult planned = world.faults.count(call);
  if (planned != CUresult::kSuccess) return planned;
  if (world.process == 0) return CUresult::kNotInitialized;
  return inHostFunction() ? CUresult::kNotPermitted : CUresult::kSuccess;
}

}  // namespace viaduct::fakegpu
