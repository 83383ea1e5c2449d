// Facts about the backend file, and its settings. Threads: constants and pure functions.
#pragma once

#include <viaduct/backend.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/sizes.h"
#include "core/setting_row.h"
#include "core/words.h"

namespace viaduct::file {

inline constexpr core::OtherText kEngine{"VIADUCT_FILE_ENGINE", "auto",
                                         [](std::string_view text, std::string& into) -> Status {
                                           if (!core::isOneOf(text, {"auto", "uring", "threads"}))
                                             return core::expectedForm("auto, uring or threads");
                                           return core::parseText(text, into);
                                         }};
inline constexpr core::OtherSetting<Toggle> kDirect{"VIADUCT_FILE_DIRECT", "auto",
                                                    core::parseToggle};
inline constexpr core::OtherSetting<std::uint32_t> kDepth{
    "VIADUCT_FILE_QUEUE_DEPTH", "128", [](std::string_view text, std::uint32_t& into) {
      return core::parseCount(text, 1, 1024, into);
    }};
inline constexpr core::OtherSetting<std::uint32_t> kOpenFiles{
    "VIADUCT_FILE_DESCRIPTORS", "0", [](std::string_view text, std::uint32_t& into) {
      return core::parseCount(text, 0, 16384, into);
    }};
inline constexpr core::OtherSetting<std::uint64_t> kRegister{
    "VIADUCT_FILE_REGISTER", "1GiB", [](std::string_view text, std::uint64_t& into) {
      return core::parseSize(text, 0, 1024 * base::kGiB, into);
    }};

inline constexpr std::array kSettings{
    core::otherRow<kEngine>(
        "Engine for reads and writes of files. uring: io_uring; threads: a pool of threads; auto: "
        "io_uring if the system permits it, else threads."),
    core::otherRow<kDirect>(
        "Whether files bypass the page cache (O_DIRECT). auto: if the file system can; on: a file "
        "that cannot is refused; off: never."),
    core::otherRow<kDepth>("Most reads and writes of files in flight, 1 to 1024. Each has at most "
                           "1MiB, and all together 32MiB."),
    core::otherRow<kOpenFiles>(
        "Most file descriptors that an agent keeps open for pinned files. 0: a quarter of the "
        "process's limit, at most 256."),
    core::otherRow<kRegister>(
        "Most host memory that io_uring keeps registered for transfers of files. Registered memory "
        "is locked. 0: none."),
};

// GPUDirect Storage is not used: memory of GPUs is staged.
inline constexpr std::array<std::string_view, 3> kAliases{"POSIX", "GDS", "GDS_MT"};

inline constexpr BackendFacts kFacts{
    .name = "file",
    .aliases = kAliases,
    .realm =
        [](std::string_view way) {
          return way.ends_with("buffered") ? Realm::kMemory : Realm::kDisk;
        },
    .storage = MemoryKind::kFile,
    .settings = kSettings,
};

}  // namespace viaduct::file
