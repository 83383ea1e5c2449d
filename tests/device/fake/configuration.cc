#include "device/fake/configuration.h"

#include <cstdlib>

namespace viaduct::fakegpu {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

template <class Number>
void read(const char* name, Number& into) {
  const std::string text = variable(name);
  if (!text.empty()) into = static_cast<Number>(std::strtoull(text.c_str(), nullptr, 0));
}

void read(const char* name, bool& into) {
  const std::string text = variable(name);
  if (!text.empty()) into = text != "0";
}

}  // namespace

std::vector<std::string> listOf(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = text.find(',', at);
    const std::size_t end = comma == std::string::npos ? text.size() : comma;
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Configuration Configuration::fromEnvironment() {
  Configuration read_values;
  read("FAKE_CUDA_DEVICES", read_values.devices);
  read("FAKE_CUDA_VERSION", read_values.version);
  read("FAKE_CUDA_MEMORY", read_values.memory);
  read("FAKE_CUDA_SEED", read_values.seed);
  read("FAKE_CUDA_PEERS", read_values.peers);
  read("FAKE_CUDA_VMM", read_values.virtual_memory);
  read("FAKE_CUDA_FABRIC", read_values.fabric);
  read_values.faults = variable("FAKE_CUDA_FAIL");
  return read_values;
}

}  // namespace viaduct::fakegpu
