// The families of known texts, for known_texts.cc. Threads: pure functions.
#pragma once

#include <vector>

#include "diag/explain/known_texts.h"

namespace viaduct::diag {

std::vector<KnownText> verbsTexts();   // work completions, memory registration, queue pairs
std::vector<KnownText> ucxTexts();     // UCX's own messages
std::vector<KnownText> efaTexts();     // libfabric, EFA and its driver, aws-ofi-nccl
std::vector<KnownText> engineTexts();  // NIXL, vLLM, SGLang, TensorRT-LLM, Dynamo
std::vector<KnownText> systemTexts();  // the kernel log, the GPU driver, limits
std::vector<KnownText> ncclTexts();    // NCCL's own messages
std::vector<KnownText> podTexts();     // Kubernetes, names, connections

}  // namespace viaduct::diag
