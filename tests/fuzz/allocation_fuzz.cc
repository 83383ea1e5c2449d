// Any text as a device plugin's variables: no crash, and the advice contains no byte of it that a
// shell or terminal would interpret.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "diag/advice.h"
#include "diag/snapshot.h"
#include "fuzz/samples.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace viaduct;

// A node with two virtual functions with active ports.
std::string folderOfNode() {
  static const viaduct::testing::TemporaryFolder folder;
  for (const std::string function : {"0000:19:00.2", "0000:19:00.3"}) {
    const std::string device = "mlx5_" + function.substr(11);
    const fs::path sys = fs::path(folder.path()) / "sys";
    const std::string port = "/sys/devices/" + function + "/infiniband/" + device + "/ports/1/";
    folder.write(port + "state", "4: ACTIVE\n");
    folder.write(port + "link_layer", "InfiniBand\n");
    fs::create_directories(sys / "bus/pci/devices");
    fs::create_directories(sys / "class/infiniband");
    fs::create_directory_symlink("../../../devices/" + function,
                                 sys / "bus/pci/devices" / function);
    fs::create_directory_symlink("../../devices/" + function + "/infiniband/" + device,
                                 sys / "class/infiniband" / device);
  }
  return folder.path();
}

void mustBe(bool allowed(unsigned char), std::string_view text) {
  for (const char c : text)
    if (!allowed(static_cast<unsigned char>(c))) std::abort();
}
bool inValues(unsigned char c) {
  return std::isalnum(c) != 0 || std::string_view("_.-,:=^").find(static_cast<char>(c)) < 7;
}
bool printed(unsigned char c) { return c >= ' ' && c <= '~'; }

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const std::string_view text :
       {R"({"0000:19:00.2":{"rdma":{"rdma_dev":"mlx5_2","uverbs":"/dev/infiniband/uverbs5"}}})",
        R"({"0000:19:00.3":{"generic":{"deviceID":"0000:19:00.3"},"extra":{"a":[1,null]}}})",
        "0000:19:00.2,0000:19:00.3"})
    out.emplace_back(text.begin(), text.end());
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static diag::Node node = *diag::nodeIn(folderOfNode());
  const std::string text(reinterpret_cast<const char*>(data), size);
  node.variables = {{"PCIDEVICE_A_INFO", text}, {"PCIDEVICE_B", text}};
  const diag::Advice advice = diag::adviceFor(node);
  if (advice.pod.verbs.empty()) std::abort();  // the functions themselves are always there
  for (const diag::AdvisedVariable& one : advice.set) mustBe(inValues, one.value);
  for (const std::string& one : advice.remarks) mustBe(printed, one);
  for (const diag::AllocationFault& one : advice.pod.given.faults) {
    mustBe(printed, one.subject);
    mustBe(printed, one.detail);
  }
  return 0;
}
