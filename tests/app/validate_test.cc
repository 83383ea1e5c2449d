// `viaduct validate` over real results: none contradicts itself, and nearly every edit is found.
#include "measure/report/validate.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/program.h"
#include "support/paths.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Document = nlohmann::ordered_json;

class ValidateCommand : public ::testing::Test {
 protected:
  ValidateCommand()
      : folder_(::testing::TempDir() + "viaduct_validate_" + std::to_string(::getpid()) + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~ValidateCommand() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + name) << content;
    return folder_ + name;
  }
  // Measures with these words, and returns the result file.
  std::string measured(std::vector<std::string> words) const {
    const std::string file = folder_ + words[0] + std::to_string(words.size()) + ".json";
    words.insert(words.end(), {"--json", file});
    Program run(words);
    EXPECT_EQ(run.finish(), 0) << run.err() << run.out();
    return file;
  }
  std::string folder_;
};

std::string textIn(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

using Numbers =
    std::vector<std::pair<Document::json_pointer, std::string>>;  // and the field's name

// Lists all numbers of a result.
void addNumbers(const Document& json, const Document::json_pointer& at, const std::string& name,
                Numbers& out) {
  if (json.is_number()) out.emplace_back(at, name);
  if (json.is_array())
    for (std::size_t i = 0; i < json.size(); ++i) addNumbers(json[i], at / i, name + "[]", out);
  if (json.is_object())
    for (const auto& [key, value] : json.items())
      addNumbers(value, at / key, name.empty() ? key : name + "." + key, out);
}

std::optional<Document> multiplied(const Document& number, double by) {
  if (number.is_number_float())
    return number.get<double>() == 0 ? std::nullopt
                                     : std::optional<Document>(number.get<double>() * by);
  const auto before = number.get<std::uint64_t>();
  const auto after = static_cast<std::uint64_t>(static_cast<double>(before) * by);
  return after == before ? std::nullopt : std::optional<Document>(after);
}

bool isCaught(const std::string& text) {
  const auto report = measure::reportFromJson(text, "edited");
  return !report || !contradictionsIn(*report).empty();
}

// Fields whose edit no check can find, each with the reason.
const std::map<std::string, const char*> kAlone{
    {"environment.members[].host.interfaces[].mbit_per_s", "of an interface that is down"},
    {"environment.members[].host.kernel_started", "nothing else depends on it"},
    {"rows[].counts.devices[].received", "a proof over loopback takes the sent bytes"},
    {"rows[].counts.devices[].received_by_others", "as long as it is no more than in the proof"},
    {"rows[].counts.devices[].sent", "of memory rows: below half of the payload"},
    {"rows[].counts.devices[].sent_by_others", "as long as it is no more than in the proof"},
    {"rows[].counts.members[].counted_s", "of a member that was not counted longest"},
    {"rows[].counts.members[].machine_cpu_s", "of a member that does not speak for its host"},
    {"rows[].counts.members[].machine_idle_s", "no other field counts idle time"},
    {"rows[].counts.members[].processors", "no other field counts them"},
    {"rows[].counts.payload[].others", "as long as the rest proves the path"},
    {"rows[].intervals[].end_s", "of an interval without bytes"},
    {"rows[].intervals[].start_s", "of an interval without bytes"},
    {"rows[].kv.descriptors", "follows from the model's layout, which no field has"},
    {"rows[].kv.destination_block", "an option that nothing repeats"},
    {"rows[].kv.destination_tp", "an option that nothing repeats"},
    {"rows[].kv.pool_bytes", "an option that nothing repeats"},
    {"rows[].kv.source_block", "an option that nothing repeats"},
    {"rows[].kv.source_tp", "an option that nothing repeats"},
    {"rows[].kv.table_sets", "an option that nothing repeats"},
    {"rows[].kv.tokens", "an option that nothing repeats"},
    {"rows[].kv.trials", "an option that nothing repeats"},
    {"rows[].pairs[].latency_us.max", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].latency_us.mean", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].latency_us.min", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].latency_us.p50", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].latency_us.p90", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].latency_us.p95", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].latency_us.p99", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].latency_us.p99_9", "of several pairs: one histogram has all transfers"},
    {"rows[].pairs[].target", "another rank is as good"},
    {"rows[].path[].ops", "rails may divide ops"},
    {"rows[].path[].stage", "which stage a share is"},
};

struct Edits {
  std::size_t all = 0, caught = 0;
  std::set<std::string> missed = {};  // fields
};

// Edits the numbers of a file, one at a time: all of them by both factors, or about `most` of them
// by one factor each.
void edit(const std::string& file, std::optional<std::size_t> most, Edits& out) {
  Document json = Document::parse(textIn(file));
  Numbers numbers;
  addNumbers(json, Document::json_pointer(), "", numbers);
  std::erase_if(numbers, [](const auto& one) { return kAlone.contains(one.second); });
  const std::size_t step = most ? numbers.size() / *most + 1 : 1;
  for (std::size_t i = 0; i < numbers.size(); i += step)
    for (const double by : {1.5, 50.0}) {
      if (most && (by > 2) != (i / step % 2 == 0)) continue;
      const auto& [at, name] = numbers[i];
      const Document before = json[at];
      const auto after = multiplied(before, by);
      if (!after) continue;
      json[at] = *after;
      ++out.all;
      if (isCaught(json.dump()))
        ++out.caught;
      else
        out.missed.insert(name);
      json[at] = before;
    }
}

TEST_F(ValidateCommand, EveryEditThatContradictsAnotherFieldIsNamed) {
  const std::string source = folder_ + "source";
  const std::vector<std::string> files{
      measured({"bench", "--backend", "tcp", "--block-sizes", "64K", "--duration", "60ms"}),
      measured({"bench", "--backend", "local", "--block-sizes", "16K", "--duration", "60ms",
                "--num-threads", "2", "--num-initiator-dev", "2", "--num-target-dev", "2",
                "--repeat", "2", "--interval", "0.02"}),
      measured({"bench", "--backend", "local", "--block-sizes", "4K", "--duration", "60ms",
                "--latency", "--warmup", "10ms"}),
      measured({"pattern", "alltoall", "--members", "3", "--block-sizes", "256K", "--duration",
                "60ms", "--backend", "tcp"}),
      measured({"kv", "bench", "Llama-3.1-8B", "--tokens", "256", "--duration", "40ms", "--repeat",
                "1", "--backend", "local"}),
      measured({"pipeline", "file:" + source + ",host,net,host", "--create-source", "1M",
                "--duration", "20ms", "--repeat", "2"}),
  };
  // An edit of all numbers takes half a minute, so by default only a part is edited.
  const bool whole = ::getenv("VIADUCT_EDIT_ALL") != nullptr;
  Edits edits;
  for (const std::string& file : files) {
    const auto report = measure::reportFromJson(textIn(file), file);
    ASSERT_TRUE(report) << report.error().text();
    for (const measure::Contradiction& one : contradictionsIn(*report))
      ADD_FAILURE() << file << ": " << one.field << ": " << one.text;
    edit(file, whole ? std::nullopt : std::optional<std::size_t>(50), edits);
  }
  EXPECT_GE(edits.all, 200U);
  std::string names;
  for (const std::string& name : edits.missed) names += name + "\n";
  EXPECT_GE(static_cast<double>(edits.caught), 0.98 * static_cast<double>(edits.all))
      << edits.caught << " of " << edits.all << " edits were caught; not those of:\n"
      << names;
  if (whole) std::printf("%zu of %zu edits were caught\n", edits.caught, edits.all);
}

TEST_F(ValidateCommand, BadInputIsNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {folder_ + "none.json", "none.json"},
      {write("cut.json", R"({"format": "viaduct-be)"), "ends too early"},
      {write("other.json", R"({"format": "viaduct-doctor/1"})"), "a file of `viaduct doctor`"},
      {write("new.json", R"({"format": "viaduct-bench/3"})"), "its format is viaduct-bench/3"},
      {write("part.json", R"({"format": "viaduct-bench/1", "version": "1", "started": ""})"),
       "end is missing"},
      {write("text", "hello"), "neither JSON nor"},
  };
  for (const auto& [file, words] : cases) {
    Program run({"validate", file});
    EXPECT_EQ(run.finish(), 2) << words;
    EXPECT_TRUE(has(run.err(), words)) << run.err();
  }
  Program none({"validate"});
  EXPECT_EQ(none.finish(), 2);
}

TEST_F(ValidateCommand, TheDocumentationHasEachRule) {
  Program rules({"validate", "--rules"});
  ASSERT_EQ(rules.finish(), 0) << rules.err();
  EXPECT_TRUE(has(textIn(std::string(kSourceDir) + "/docs/validate.md"), rules.out()))
      << "viaduct validate --rules prints the table of docs/validate.md";
}

}  // namespace
}  // namespace viaduct::testing
