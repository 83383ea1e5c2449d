// Runs a fuzz target without libFuzzer, as a test. Inputs come from a seed, and from changes to the
// target's samples. A failure prints seed and iteration, which repeat it.
//   TARGET [iterations] [seed]
// TARGET FILE...
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "fuzz/samples.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace viaduct::fuzz {
// A target without samples gets only random bytes.
[[gnu::weak]] std::vector<Sample> samples() { return {}; }

namespace {

using base::Random;

constexpr std::size_t kLongest = 4096;
constexpr unsigned kSecondsPerInput = 10;  // a longer run counts as a hang

std::uint64_t current_iteration = 0, current_seed = 1;

// Async-signal-safe, so it formats only one number at a time.
void sayWhere(int signal) {
  std::array<char, 96> line{};
  char* at = line.data();
  const auto add = [&](const char* text) {
    while (*text != '\0') *at++ = *text++;
  };
  const auto number = [&](std::uint64_t value) {
    at = std::to_chars(at, line.data() + line.size(), value).ptr;
  };
  add("fuzz: failed at iteration ");
  number(current_iteration);
  add(" of seed ");
  number(current_seed);
  add("\n");
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(at - line.data()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Sample noise(Random& random) {
  Sample out(random.below(random.chance(0.1) ? kLongest : 200));
  for (auto& byte : out) byte = static_cast<std::uint8_t>(random.next());
  return out;
}

void changeOnce(Sample& input, Random& random) {
  constexpr std::array<std::uint8_t, 6> kTelling{0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
  const std::size_t at = random.below(input.size());
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.below(6)) {
    case 0:
      *place ^= static_cast<std::uint8_t>(1U << random.below(8));
      break;
    case 1:
      *place = static_cast<std::uint8_t>(random.next());
      break;
    case 2:
      *place = kTelling[random.below(kTelling.size())];
      break;
    case 3:  // make a whole number large
      for (std::size_t i = at; i < std::min(at + 4, input.size()); ++i) input[i] = 0xff;
      break;
    case 4:
      input.erase(place, place + static_cast<std::ptrdiff_t>(random.below(input.size() - at)));
      break;
    default: {
      const Sample more(place, place + static_cast<std::ptrdiff_t>(random.below(
                                           std::min<std::size_t>(64, input.size() - at))));
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(random.below(input.size())),
                   more.begin(), more.end());
    }
  }
}

// Depends only on its arguments and not on earlier inputs, so that one iteration can be repeated
// alone.
Sample inputOf(const std::vector<Sample>& known, std::uint64_t seed, std::uint64_t iteration) {
  Random random(seed * 0x10001 + iteration);
  if (iteration < known.size()) return known[iteration];
  if (known.empty() || random.chance(0.2)) return noise(random);
  Sample input = known[random.below(known.size())];
  for (std::uint64_t changes = 1 + random.below(4); changes > 0 && !input.empty(); --changes)
    changeOnce(input, random);
  return input;
}

void runOne(const Sample& input) {
  // A copy of the exact size, so that a sanitizer sees a read of the first byte behind it.
  const Sample exact(input.begin(), input.end());
  ::alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ::alarm(0);
}

int runFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "fuzz: cannot read %s\n", path);
    return 1;
  }
  runOne(Sample(std::istreambuf_iterator<char>(file), {}));
  return 0;
}

int run(int argc, char** argv) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    std::signal(signal, &sayWhere);
  struct stat info{};
  if (argc > 1 && ::stat(argv[1], &info) == 0) {
    int failed = 0;
    for (int i = 1; i < argc; ++i) failed |= runFile(argv[i]);
    return failed;
  }
  const std::uint64_t iterations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  current_seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::vector<Sample> known = samples();
  for (; current_iteration < iterations; ++current_iteration)
    runOne(inputOf(known, current_seed, current_iteration));
  std::printf("fuzz: %llu inputs of seed %llu\n", static_cast<unsigned long long>(iterations),
              static_cast<unsigned long long>(current_seed));
  return 0;
}

}  // namespace
}  // namespace viaduct::fuzz

int main(int argc, char** argv) { return viaduct::fuzz::run(argc, argv); }
