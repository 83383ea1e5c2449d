// The KV caches of known models. Threads: pure functions.
#pragma once

#include <viaduct/kv.h>
#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

struct KvModel {
  std::string name = {};
  // The layout of one rank, without places. Blocks have 16 tokens, or the model's own sizes.
  KvLayout layout = {};
  bool own_blocks = false;  // the model prescribes the sizes of its blocks
};

std::vector<std::string> kvModelNames();
// Finds a model by its name in either case, with or without the owner: "meta-llama/Llama-3.1-8B".
// The error of an unknown name has the most similar names.
Result<KvModel> kvModel(std::string_view name);

}  // namespace viaduct
