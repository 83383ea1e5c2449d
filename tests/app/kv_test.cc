// `viaduct kv size` as users run it.
#include <gtest/gtest.h>

#include "app/program.h"
#include "base/json.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

// The output of a run that ends well.
std::string sizeText(std::vector<std::string> words) {
  words.insert(words.begin(), {"kv", "size"});
  Program run(words);
  EXPECT_EQ(run.finish(), 0) << run.err();
  return run.out();
}
base::Json sizeJson(std::vector<std::string> words) {
  words.emplace_back("--json");
  auto json = base::parseJson(sizeText(std::move(words)));
  EXPECT_TRUE(json) << json.error().text();
  return json ? *json : base::Json();
}
// The message of a run that is refused.
std::string refusal(std::vector<std::string> words) {
  words.insert(words.begin(), "kv");
  Program run(words);
  EXPECT_EQ(run.finish(), 2);
  EXPECT_EQ(run.out(), "");
  return run.err();
}

TEST(KvCommand, PrintsBytesBlocksAndDescriptors) {
  const std::string text = sizeText({"Llama-3.1-8B"});
  EXPECT_TRUE(has(text, "Llama-3.1-8B: a request of 8192 tokens on one rank, TP 1")) << text;
  EXPECT_TRUE(has(text, "131072      2097152     512  32768  kv\n")) << text;
  EXPECT_TRUE(has(text, "one rank:    1.0 GiB (1073741824 bytes)")) << text;
  EXPECT_TRUE(has(text, "descriptors: 32768 of one rank if each page is one, 512 if")) << text;
}

TEST(KvCommand, TheFlagsChangeTheRequest) {
  const base::Json json =
      sizeJson({"meta-llama/Llama-3.1-8B", "--tokens", "1000", "--tp", "8", "--block", "64"});
  EXPECT_EQ(json["format"], "viaduct-kv-size/1");
  EXPECT_EQ(json["model"], "Llama-3.1-8B");
  EXPECT_EQ(json["blocks"], 16);
  EXPECT_EQ(json["pages"], 16 * 64);
  EXPECT_EQ(json["bytes"], 1024 * 131'072 / 8);
  EXPECT_EQ(json["bytes_of_all_ranks"], 1024 * 131'072);
  EXPECT_EQ(json["groups"][0]["bytes_per_token"], 131'072 / 8);
  EXPECT_EQ(json["groups"][0]["caches"][0]["page_bytes"], 64 * 128 * 2);
}

TEST(KvCommand, TheModelMayBeNamed) {
  EXPECT_EQ(sizeText({"--model", "Llama-3.1-8B", "--tp", "8"}),
            sizeText({"Llama-3.1-8B", "--tp", "8"}));
  EXPECT_TRUE(has(refusal({"size", "Llama-3.1-8B", "--model=Qwen3-8B"}), "given twice"));
  EXPECT_TRUE(has(refusal({"bench", "--tokens", "8", "--model=no-such-model"}), "no-such-model"));
  EXPECT_TRUE(has(refusal({"bench", "--tokens", "8"}), "viaduct kv bench MODEL"));
}

TEST(KvCommand, EveryRankHasALatentRow) {
  EXPECT_EQ(sizeJson({"DeepSeek-V3"})["bytes"], sizeJson({"DeepSeek-V3", "--tp", "8"})["bytes"]);
}

TEST(KvCommand, GroupsWithWindowsHaveFewerBlocks) {
  const base::Json json = sizeJson({"DeepSeek-V4-Pro"});
  EXPECT_EQ(json["blocks"], 58);
  EXPECT_EQ(json["pages"], 3802);
  EXPECT_EQ(json["groups"][1]["window"], 128);
  EXPECT_EQ(json["groups"][1]["blocks"], 3);
}

TEST(KvCommand, AnErrorSaysWhatIsPossible) {
  EXPECT_TRUE(has(refusal({"size", "Lama-3.1-8B"}), "did you mean Llama-3.1-8B?"));
  EXPECT_TRUE(has(refusal({"size", "GPT-2"}), "the models are Llama-3.1-8B, "));
  EXPECT_TRUE(has(refusal({"size", "Qwen3-8B", "--tp", "3"}), "the nearest tp is 2 or 4"));
  EXPECT_TRUE(has(refusal({"size", "Qwen3-8B", "--tp", "0"}), "--tp"));
  EXPECT_TRUE(has(refusal({"size", "Qwen3-8B", "--blocks", "8"}), "--block"));
  EXPECT_TRUE(has(refusal({"size", "DeepSeek-V4-Pro", "--block", "64"}), "prescribes its blocks"));
  EXPECT_TRUE(has(refusal({"size"}), "MODEL is required"));
  EXPECT_TRUE(has(refusal({"sizes"}), "did you mean size?"));
  EXPECT_TRUE(has(refusal({}), "Subcommands:"));
}

}  // namespace
}  // namespace viaduct::testing
