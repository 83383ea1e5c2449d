#include <fmt/format.h>
#include <viaduct/kv_models.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/lists.h"
#include "base/nearest.h"
#include "base/text.h"
#include "kv/layout.h"

namespace viaduct::kv {
namespace {

// From the config.json of each model: num_hidden_layers, num_key_value_heads, head_dim. Values are
// bf16.
struct UniformModel {
  std::string_view name;
  std::uint32_t layers, kv_heads, head_size;
  std::uint32_t window = 0;  // of the layers with even numbers; 0: there is none
};
constexpr std::array kUniform{
    UniformModel{"Llama-3.1-8B", 32, 8, 128},     UniformModel{"Llama-3.1-70B", 80, 8, 128},
    UniformModel{"Llama-3.1-405B", 126, 8, 128},  UniformModel{"Qwen3-8B", 36, 8, 128},
    UniformModel{"Qwen3-32B", 64, 8, 128},        UniformModel{"Qwen3-30B-A3B", 48, 4, 128},
    UniformModel{"Qwen3-235B-A22B", 94, 4, 128},  UniformModel{"gpt-oss-20b", 24, 8, 64, 128},
    UniformModel{"gpt-oss-120b", 36, 8, 64, 128},
};

constexpr std::uint32_t kDeepSeekLayers = 61;

// Layers from `first` on, `step` apart.
std::vector<std::uint32_t> layersFrom(std::uint32_t first, std::uint32_t end, std::uint32_t step) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t layer = first; layer < end; layer += step) out.push_back(layer);
  return out;
}

KvModel uniform(const UniformModel& model) {
  const auto group = [&](std::uint32_t first, std::uint32_t step, std::uint32_t window) {
    return KvGroup{.caches = {{.layers = layersFrom(first, model.layers, step),
                               .kv_heads = model.kv_heads,
                               .head_size = model.head_size}},
                   .window = window};
  };
  KvModel out{.name = std::string(model.name)};
  if (model.window == 0)
    out.layout.groups = {group(0, 1, 0)};
  else
    out.layout.groups = {group(1, 2, 0), group(0, 2, model.window)};
  return out;
}

// One tensor of `bytes` for each of the layers.
KvCache bytesOf(std::string name, std::vector<std::uint32_t> layers, std::uint32_t bytes,
                std::uint32_t entry_tokens = 1) {
  return {.name = std::move(name),
          .layers = std::move(layers),
          .tensors = 1,
          .head_size = bytes,
          .element_bytes = 1,
          .entry_tokens = entry_tokens};
}

// The latent vector has 512 elements, and its part with rotary positions 64, both in bf16.
KvModel deepSeekLatent(std::string name) {
  KvModel out{.name = std::move(name)};
  out.layout.groups = {{.caches = {{.name = "latent",
                                    .layers = layersFrom(0, kDeepSeekLayers, 1),
                                    .tensors = 1,
                                    .head_size = 576}}}};
  return out;
}

// The caches in vLLM's format fp8_ds_mla, and the keys of the indexer of sparse attention.
KvModel deepSeekSparse() {
  const auto layers = layersFrom(0, kDeepSeekLayers, 1);
  KvModel out{.name = "DeepSeek-V3.2"};
  out.layout.groups = {
      {.caches = {bytesOf("latent", layers, 656), bytesOf("indexer", layers, 132)}}};
  return out;
}

// The layout as vLLM allocates it: rows that five groups share, in pages of a multiple of 576
// bytes. 31 layers have one entry for 128 tokens. The other 30 have one for 4 tokens, and an
// indexer. The layer numbers below only tell layers apart.
KvModel deepSeekCompressed() {
  const auto all = layersFrom(0, kDeepSeekLayers, 1);
  const auto fourth = layersFrom(1, kDeepSeekLayers, 2);
  const auto rest = layersFrom(0, kDeepSeekLayers, 2);
  KvModel out{.name = "DeepSeek-V4-Pro", .own_blocks = true};
  out.layout.page_align = 576;
  out.layout.groups = {
      {.caches = {bytesOf("c128a", rest, 584, 128), bytesOf("c4a-indexer", fourth, 132, 4),
                  bytesOf("c4a", fourth, 584, 4)},
       .block_tokens = 256},
      {.caches = {bytesOf("swa", rest, 584)}, .block_tokens = 64, .window = 128},
      {.caches = {bytesOf("swa", fourth, 584)}, .block_tokens = 64, .window = 128},
      {.caches = {bytesOf("c4a-state", fourth, 8192), bytesOf("c4a-indexer-state", fourth, 2048)},
       .block_tokens = 4,
       .window = 8},
      {.caches = {bytesOf("c128a-state", rest, 4096)}, .block_tokens = 8, .window = 128}};
  return out;
}

std::vector<KvModel> allModels() {
  std::vector<KvModel> out = base::mapped(kUniform, uniform);
  out.push_back(deepSeekLatent("DeepSeek-V3"));
  out.push_back(deepSeekLatent("DeepSeek-R1"));
  out.push_back(deepSeekSparse());
  out.push_back(deepSeekCompressed());
  return out;
}

}  // namespace
}  // namespace viaduct::kv

namespace viaduct {

std::vector<std::string> kvModelNames() {
  std::vector<std::string> out;
  for (KvModel& model : kv::allModels()) out.push_back(std::move(model.name));
  return out;
}

Result<KvModel> kvModel(std::string_view name) {
  const std::string_view alone = name.substr(name.rfind('/') + 1);
  for (KvModel& model : kv::allModels())
    if (base::sameWord(model.name, alone)) return std::move(model);
  const std::vector<std::string> names = kvModelNames();
  const std::string near = base::nearest(alone, names);
  return Error{.code = Code::kNotFound,
               .operation = "KV model",
               .detail = fmt::format("there is no model \"{}\"", name),
               .remedy = near.empty() ? fmt::format("the models are {}", fmt::join(names, ", "))
                                      : fmt::format("did you mean {}?", near)};
}

}  // namespace viaduct
