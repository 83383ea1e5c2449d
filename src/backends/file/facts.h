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

inline constexpr char kEngine[] = "VIADUCT_FILE_ENGINE";
inline constexpr char kDirect[] = "VIADUCT_FILE_DIRECT";
inline constexpr char kDepth[] = "VIADUCT_FILE_QUEUE_DEPTH";
inline constexpr char kOpenFiles[] = "VIADUCT_FILE_DESCRIPTORS";
inline constexpr char kRegister[] = "VIADUCT_FILE_REGISTER";

inline constexpr std::string_view kUsualDepth = "128", kUsualOpenFiles = "0",
                                  kUsualRegister = "1GiB";
inline constexpr std::uint64_t kMostDepth = 1024, kMostOpenFiles = 16384;
inline constexpr std::uint64_t kMostRegister = std::uint64_t{1} << 40U;

using core::otherText;

inline Status parseEngine(std::string_view text) {
  if (core::isOneOf(text, {"auto", "uring", "threads"})) return Ok{};
  return core::expectedForm("auto, uring or threads");
}
inline Status parseDirect(std::string_view text) {
  Toggle ignored{};
  return core::parseToggle(text, ignored);
}
inline Status parseDepth(std::string_view text) {
  std::uint32_t ignored = 0;
  return core::parseCount(text, 1, kMostDepth, ignored);
}
inline Status parseOpenFiles(std::string_view text) {
  std::uint32_t ignored = 0;
  return core::parseCount(text, 0, kMostOpenFiles, ignored);
}
inline Status parseRegister(std::string_view text) {
  std::uint64_t ignored = 0;
  return core::parseSize(text, 0, kMostRegister, ignored);
}

// Makes a row for a value in Settings::others, which stays text until the backend opens.
template <const char* Variable, const auto& Fallback, auto Parse>
constexpr SettingRow otherSetting(std::string_view help) {
  return {.variable = Variable,
          .fallback = Fallback,
          .help = help,
          .parse = [](std::string_view text, Settings& into) -> Status {
            VIADUCT_CHECK(Parse(text));
            core::keepOther(into, Variable, text, Fallback);
            return Ok{};
          },
          .check = [](const Settings& s) { return Parse(otherText(s, Variable, Fallback)); },
          .show = [](const Settings& s) { return otherText(s, Variable, Fallback); }};
}

inline constexpr std::string_view kAuto = "auto";

inline constexpr std::array kSettings{
    otherSetting<kEngine, kAuto, parseEngine>(
        "Engine for reads and writes of files. uring: io_uring; threads: a pool of threads; auto: "
        "io_uring if the system permits it, else threads."),
    otherSetting<kDirect, kAuto, parseDirect>(
        "Whether files bypass the page cache (O_DIRECT). auto: if the file system can; on: a file "
        "that cannot is refused; off: never."),
    otherSetting<kDepth, kUsualDepth, parseDepth>("Most reads and writes of files in flight, 1 to "
                                                  "1024. Each has at most 1MiB, and all together "
                                                  "32MiB."),
    otherSetting<kOpenFiles, kUsualOpenFiles, parseOpenFiles>(
        "Most file descriptors that an agent keeps open for pinned files. 0: a quarter of the "
        "process's limit, at most 256."),
    otherSetting<kRegister, kUsualRegister, parseRegister>(
        "Most host memory that io_uring keeps registered for transfers of files. Registered memory "
        "is locked. 0: none."),
};

inline Toggle directOf(const Settings& settings) {
  Toggle out = Toggle::kAuto;
  static_cast<void>(core::parseToggle(otherText(settings, kDirect, kAuto), out));
  return out;
}
inline std::uint32_t depthOf(const Settings& settings) {
  std::uint32_t out = 0;
  static_cast<void>(core::parseCount(otherText(settings, kDepth, kUsualDepth), 1, kMostDepth, out));
  return out;
}
inline std::uint32_t openFilesOf(const Settings& settings) {
  std::uint32_t out = 0;
  static_cast<void>(
      core::parseCount(otherText(settings, kOpenFiles, kUsualOpenFiles), 0, kMostOpenFiles, out));
  return out;
}
inline std::uint64_t registerOf(const Settings& settings) {
  std::uint64_t out = 0;
  static_cast<void>(
      core::parseSize(otherText(settings, kRegister, kUsualRegister), 0, kMostRegister, out));
  return out;
}

inline constexpr std::array<std::string_view, 1> kAliases{"POSIX"};

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
