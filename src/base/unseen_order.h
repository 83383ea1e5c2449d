// TSan knows no order between an owner's accesses to pinned memory and those of a peer's transfers,
// since the order comes from the peer's process. Its reports would be false, and each one stops the
// process for longer than some tests allow. Empty without TSan. Threads: one at a time.
#pragma once

#include "base/under_tsan.h"

#ifdef VIADUCT_TSAN
// Functions of TSan's library.
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace viaduct::base {

// While the object lives, TSan ignores the accesses of this thread.
class [[maybe_unused]] UnseenOrder {
 public:
#ifdef VIADUCT_TSAN
  UnseenOrder() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~UnseenOrder() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  UnseenOrder() = default;
  ~UnseenOrder() = default;
#endif
  UnseenOrder(const UnseenOrder&) = delete;
  UnseenOrder& operator=(const UnseenOrder&) = delete;
};

}  // namespace viaduct::base
