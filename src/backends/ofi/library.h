// libfabric itself, loaded when somebody first asks for it and never let go: whoever links Viaduct
// and does not use it must not get what its providers do to a process. Threads: any.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <viaduct/result.h>

#include <memory>
#include <string>

// The rest is reached through what these give.
#define VIADUCT_OFI_FUNCTIONS(F) \
  F(fi_version) F(fi_tostr) F(fi_strerror) F(fi_getinfo) F(fi_dupinfo) F(fi_freeinfo) F(fi_fabric)

namespace viaduct::ofi {

// What we speak; newer libraries understand it.
constexpr std::uint32_t kSpoken = FI_VERSION(1, 17);

// The functions that are used, by their own names. They are the newest the library has: no struct
// that has grown over the years is made here, the library makes each (fi_dupinfo of nothing).
struct OfiLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define VIADUCT_OFI_MEMBER(name) decltype(&::name) name = nullptr;
  VIADUCT_OFI_FUNCTIONS(VIADUCT_OFI_MEMBER)
#undef VIADUCT_OFI_MEMBER
  std::string version = {};  // "1.17.0"
};

// The one of this process. kUnsupported: not installed, or older than what we speak.
Result<const OfiLibrary*> library();
// "libfabric 1.17.0", or why it is not loaded.
std::string libraryVersion();

// The error of a call of libfabric's that gave `status`, which is negative.
Error ofiError(Code code, std::string operation, std::int64_t status, std::string device);

struct FreeInfo {
  void operator()(fi_info* info) const noexcept;
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

struct CloseFid {
  template <class F>
  void operator()(F* f) const noexcept {
    static_cast<void>(fi_close(&f->fid));
  }
};
// What libfabric has opened; members close last to first: a queue before its domain.
template <class F>
using Fid = std::unique_ptr<F, CloseFid>;

}  // namespace viaduct::ofi
