// Loads libfabric at its first use, and never unloads it. libfabric's providers install signal
// handlers, so a program that does not use ofi must not load it. Threads: any.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <viaduct/result.h>

#include <memory>
#include <string>

// libfabric's other functions are called through the objects that these return.
#define VIADUCT_OFI_FUNCTIONS(F) \
  F(fi_version) F(fi_tostr) F(fi_strerror) F(fi_getinfo) F(fi_dupinfo) F(fi_freeinfo) F(fi_fabric)

namespace viaduct::ofi {

// The version of libfabric's API that we use. Newer libraries support it.
constexpr std::uint32_t kSpoken = FI_VERSION(1, 17);

// The functions that we use, by their own names, in the newest version that the library has. The
// library makes all structs that differ between versions, with fi_dupinfo(nullptr).
struct OfiLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define VIADUCT_OFI_MEMBER(name) decltype(&::name) name = nullptr;
  VIADUCT_OFI_FUNCTIONS(VIADUCT_OFI_MEMBER)
#undef VIADUCT_OFI_MEMBER
  std::string version = {};  // "1.17.0"
};

// The library of this process. kUnsupported: it is not installed, or older than kSpoken.
Result<const OfiLibrary*> library();
// "libfabric 1.17.0", or the reason why it is not loaded.
std::string libraryVersion();

// The error of a libfabric call that returned `status`, which is negative.
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
// Owns an object that libfabric has opened. Declare a queue after its domain, so that it closes
// first.
template <class F>
using Fid = std::unique_ptr<F, CloseFid>;

}  // namespace viaduct::ofi
