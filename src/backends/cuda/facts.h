// Facts about the backend cuda, and its settings. Threads: constants and pure functions.
#pragma once

#include <viaduct/backend.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/sizes.h"
#include "core/setting_row.h"
#include "core/words.h"

namespace viaduct::cuda {

// A size, or nothing for "auto".
using AutoSize = std::optional<std::uint64_t>;
inline Status parseAutoSize(std::string_view text, AutoSize& into) {
  into.reset();
  return text == "auto" ? Status(Ok{})
                        : core::parseSize(text, 0, 1024 * base::kGiB, into.emplace());
}

inline constexpr core::OtherText kLibrary{"VIADUCT_CUDA_LIBRARY", "libcuda.so.1", core::parseText};
inline constexpr core::OtherSetting<AutoSize> kKernelBelow{"VIADUCT_CUDA_KERNEL_BELOW", "auto",
                                                           parseAutoSize};
inline constexpr core::OtherSetting<AutoSize> kRegister{"VIADUCT_CUDA_REGISTER", "auto",
                                                        parseAutoSize};
inline constexpr core::OtherSetting<std::chrono::microseconds> kPollFor{
    "VIADUCT_CUDA_POLL_FOR", "200us", [](std::string_view text, std::chrono::microseconds& into) {
      return core::parseDuration(text, std::chrono::microseconds(0),
                                 std::chrono::microseconds(std::chrono::seconds(1)), into);
    }};

inline constexpr std::array kSettings{
    core::otherRow<kLibrary>(
        "CUDA's driver library. It is loaded when memory of a GPU is pinned or allocated."),
    core::otherRow<kKernelBelow>(
        "Blocks below this size are copied by a kernel on the GPU, others by its copy engines. "
        "auto: measured for each GPU when its memory is pinned first; 0: never by a kernel."),
    core::otherRow<kRegister>(
        "Most host memory that stays registered with CUDA for copies from and to GPUs. Registered "
        "memory is locked. auto: half of this host's memory; 0: none."),
    core::otherRow<kPollFor>(
        "Time for which a thread polls for the end of a GPU's copy. A copy that takes longer "
        "writes to an event descriptor at its end."),
};

inline constexpr BackendFacts kFacts{
    .name = "cuda",
    .realm = [](std::string_view) { return Realm::kGpu; },
    .gpus = true,
    .settings = kSettings,
};

}  // namespace viaduct::cuda
