// Checks variables with one value, or one kind of value, that defeats RDMA or breaks transfers.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/text.h"
#include "diag/name_list.h"
#include "diag/variable_checks.h"

namespace viaduct::diag {
namespace {

struct Switch {
  const char* name;
  bool (*applies)(const PodView& pod);
  bool (*defeats)(std::string_view value);
  const char* what;      // continues the words "NAME=value"
  const char* cause;     // why the value matters on a node with such devices
  const char* fix = "";  // empty: unset the variable
  const char* gain = "";
};

bool isAny(std::string_view value, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return base::sameWord(value, word); });
}

bool isOn(std::string_view value) { return isAny(value, {"1", "y", "yes", "true", "on"}); }
bool isOff(std::string_view value) { return isAny(value, {"0", "n", "no", "false", "off"}); }
bool isNumberAboveNothing(std::string_view value) {
  return std::strtoll(std::string(value).c_str(), nullptr, 0) != 0;
}

bool anyRdma(const PodView& pod) { return !pod.verbs.empty() || !pod.efa.empty(); }
bool hasVerbs(const PodView& pod) { return !pod.verbs.empty(); }
bool hasEfa(const PodView& pod) { return !pod.efa.empty(); }
bool hasEfaOnly(const PodView& pod) { return pod.efaOnly(); }
bool hasVerbsOnly(const PodView& pod) { return !pod.verbs.empty() && pod.efa.empty(); }
bool hasRdmaAndGpu(const PodView& pod) { return anyRdma(pod) && pod.gpus != 0; }
bool hasVerbsAndGpu(const PodView& pod) { return hasVerbs(pod) && pod.gpus != 0; }
bool hasEfaAndGpu(const PodView& pod) { return hasEfa(pod) && pod.gpus != 0; }
bool hasGpus(const PodView& pod) { return pod.gpus > 1; }
bool hasVirtualFunction(const PodView& pod) {
  return std::ranges::any_of(pod.verbs,
                             [](const RdmaDevice& one) { return !one.physical.empty(); });
}

// Whether libfabric may use one of these providers with FI_PROVIDER=`value`: "efa",
// "verbs;ofi_rxm", "^tcp".
bool mayTake(std::string_view value, std::initializer_list<std::string_view> providers) {
  const bool excludes = value.starts_with('^');
  if (excludes) value.remove_prefix(1);
  std::string text(value);
  std::replace(text.begin(), text.end(), ';', ',');
  std::size_t named = 0;
  for (const std::string& one : base::partsOf(text))
    if (isAny(one, providers)) ++named;
  return excludes ? named < providers.size() : named != 0;
}

bool allowsExpandable(std::string_view value) {
  return value.find("expandable_segments:True") != std::string_view::npos;
}

constexpr auto kLeftover = "Such a setting is often left over from debugging.";
constexpr auto kTcpGain =
    "NCCL uses RDMA. A cluster of H100 went from 0.98 GiB/s over TCP to 83.33 GiB/s over RoCE.";
constexpr auto kExpandableCause =
    "Memory of such segments cannot be registered through peer memory, and older UCX copies it "
    "through the host.";
constexpr auto kExpandableGain =
    "GPU blocks are registered. One report went from 0.3 GB/s to 200 GB/s.";
constexpr auto kUcxOnEfa =
    "UCX of most images has no RDMA on EFA: it falls back to TCP, finds no transport, or emulates "
    "RDMA in software over datagrams (UD).";
constexpr auto kUseLibfabric =
    "Choose the backend LIBFABRIC of NIXL, and unset the variable:\n"
    "  unset UCX_TLS UCX_NET_DEVICES\n"
    "  export SGLANG_DISAGGREGATION_NIXL_BACKEND=LIBFABRIC\n"
    "  export TRTLLM_NIXL_KVCACHE_BACKEND=LIBFABRIC\n"
    "  vLLM: --kv-transfer-config with kv_connector_extra_config.backends [\"LIBFABRIC\"]";
constexpr auto kLibfabricGain =
    "A shorter time to first token: one report measured 76 ms with NIXL's LIBFABRIC backend and "
    "252 ms with UCX.";

constexpr std::array kSwitches{
    Switch{"VIADUCT_FAULTS", [](const PodView&) { return true; },
           [](std::string_view v) { return !v.empty(); }, "asks Viaduct's agents to inject faults.",
           "It is for tests of recovery. Without VIADUCT_FAULTS_ALLOWED=yes no agent opens.",
           "unset VIADUCT_FAULTS VIADUCT_FAULTS_ALLOWED",
           "Transfers run undisturbed, and results of benchmarks can be proven."},
    Switch{"NCCL_IB_DISABLE", hasVerbs, isNumberAboveNothing,
           "keeps NCCL from InfiniBand and RoCE.", kLeftover, "", kTcpGain},
    Switch{"NCCL_NET", anyRdma, [](std::string_view v) { return base::sameWord(v, "Socket"); },
           "makes NCCL use TCP sockets.", kLeftover, "", kTcpGain},
    Switch{"NCCL_NET", hasEfaOnly, [](std::string_view v) { return base::sameWord(v, "IB"); },
           "asks NCCL for InfiniBand, and this pod has only EFA.",
           "NCCL reaches EFA through the plugin aws-ofi-nccl. It starts no job without the "
           "network that was asked for."},
    Switch{"NCCL_P2P_DISABLE", hasGpus, isNumberAboveNothing,
           "keeps NCCL from direct transfers between GPUs of this node (NVLink or PCIe).",
           kLeftover, "", "NCCL uses NVLink and PCIe peer transfers."},
    Switch{"NCCL_NET_GDR_LEVEL", hasRdmaAndGpu,
           [](std::string_view v) { return isAny(v, {"0", "LOC"}); },
           "makes NCCL copy GPU memory through the host before each send.", kLeftover, "",
           "NICs read GPU memory directly. Without the switch NCCL decides by distance."},
    Switch{"NCCL_NET_PLUGIN", hasEfa, [](std::string_view v) { return base::sameWord(v, "none"); },
           "keeps NCCL from loading aws-ofi-nccl, its only way to EFA.",
           "NCCL falls back to NET/Socket.", "", "NCCL uses EFA instead of TCP."},
    Switch{"UCX_IB_GPU_DIRECT_RDMA", hasVerbsAndGpu, isOff,
           "makes UCX copy GPU memory through the host.", kLeftover, "",
           "NICs read and write GPU memory directly."},
    Switch{"UCX_RNDV_THRESH", hasVerbs,
           [](std::string_view v) { return v.find("inf") != std::string_view::npos; },
           "keeps UCX from zero-copy transfers of large messages.",
           "Below the rendezvous threshold UCX sends eagerly, and usually copies through buffers "
           "of its own.",
           "", "Large messages go by RDMA without a copy."},
    Switch{"UCX_IB_REG_METHODS", hasVirtualFunction,
           [](std::string_view v) { return v.starts_with("odp"); },
           "asks for on-demand paging on virtual functions.",
           "Functions without on-demand paging refuse such a registration."},
    Switch{"UCX_TLS", hasEfaOnly,
           [](std::string_view v) {
             const auto transports = base::partsOf(v);
             return std::find(transports.begin(), transports.end(), "srd") == transports.end();
           },
           "is for InfiniBand and RoCE, and this pod has only EFA.", kUcxOnEfa, kUseLibfabric,
           kLibfabricGain},
    Switch{"UCX_NET_DEVICES", hasEfaOnly,
           [](std::string_view v) { return v.find("rdmap") == std::string_view::npos; },
           "is for InfiniBand and RoCE, and this pod has only EFA.", kUcxOnEfa, kUseLibfabric,
           kLibfabricGain},
    Switch{"FI_PROVIDER", hasEfa, [](std::string_view v) { return !mayTake(v, {"efa"}); },
           "keeps libfabric from EFA.",
           "libfabric opens only the providers that the variable allows.", "export FI_PROVIDER=efa",
           "libfabric uses EFA instead of TCP."},
    Switch{"FI_PROVIDER", hasVerbsOnly,
           [](std::string_view v) { return !mayTake(v, {"verbs", "ucx", "mlx", "psm3", "opx"}); },
           "allows no provider for the InfiniBand or RoCE devices of this pod.",
           "libfabric opens only the providers that the variable allows."},
    Switch{"FI_EFA_USE_DEVICE_RDMA", hasEfa, isOff, "makes libfabric emulate RDMA by messages.",
           "Without device RDMA, libfabric emulates each read and write by messages, which the "
           "CPUs of both hosts copy.",
           "", "EFA devices read and write the peer's memory in hardware, without the peer's CPU."},
    Switch{"FI_EFA_ENABLE_SHM_TRANSFER", hasEfaAndGpu, isOn,
           "lets libfabric use shared memory for peers on this node.",
           "That path cannot take GPU memory on all versions.",
           "export FI_EFA_ENABLE_SHM_TRANSFER=0", "Transfers of GPU memory on one node succeed."},
    Switch{"PYTORCH_CUDA_ALLOC_CONF", hasRdmaAndGpu, allowsExpandable,
           "makes PyTorch allocate GPU memory in expandable segments, which peer memory cannot "
           "register.",
           kExpandableCause, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False",
           kExpandableGain},
    Switch{"PYTORCH_ALLOC_CONF", hasRdmaAndGpu, allowsExpandable,
           "makes PyTorch allocate GPU memory in expandable segments, which peer memory cannot "
           "register.",
           kExpandableCause, "export PYTORCH_ALLOC_CONF=expandable_segments:False",
           kExpandableGain},
};

// Reports NCCL_IB_* variables on EFA, because NCCL's own InfiniBand code does not run there.
void reportWithoutEffect(const VariableScene& scene) {
  if (!scene.pod.efaOnly()) return;
  Finding finding{.code = "variables.no-effect"};
  std::string names;
  for (auto at = scene.node.variables.lower_bound("NCCL_IB_");
       at != scene.node.variables.end() && at->first.starts_with("NCCL_IB_"); ++at) {
    names += (names.empty() ? "" : ", ") + printable(at->first);
    finding.evidence.push_back(
        {scene.node.variables_from, printable(at->first + "=" + at->second)});
  }
  if (names.empty()) return;
  finding.what = names + ": no effect on EFA.";
  finding.cause = "The variables are for InfiniBand and RoCE.";
  scene.findings.add(std::move(finding));
}

}  // namespace

void checkSwitches(const VariableScene& scene) {
  for (const Switch& one : kSwitches) {
    const std::string* const value = scene.node.variable(one.name);
    if (value == nullptr || !one.applies(scene.pod) || !one.defeats(*value)) continue;
    scene.add(one.name, {.severity = Severity::kWarning,
                         .what = one.what,
                         .cause = one.cause,
                         .fix = one.fix,
                         .gain = one.gain});
  }
  reportWithoutEffect(scene);
}

}  // namespace viaduct::diag
