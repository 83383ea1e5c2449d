// Connects two doctors. Each has examined its own node; together they measure the path between
// them.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <viaduct/agent.h>

#include <algorithm>
#include <cstdio>

#include "base/fd.h"
#include "base/json.h"
#include "base/net/address.h"
#include "measure/p2p/reach.h"
#include "measure/result/result_files.h"
#include "measure/run/wait_ready.h"
#include "viaduct/doctor.h"
#include "viaduct/interrupt.h"
#include "viaduct/p2p.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20U;  // of a diagnosis

// Parses an address: "10.0.0.1", "10.0.0.1:5556", "[fd00::1]:5556".
Result<P2pOptions> optionsFor(const std::string& address, const DoctorCommand& command) {
  P2pOptions out;
  out.ip = address;
  out.secret = command.secret;
  const bool v6 = std::count(address.begin(), address.end(), ':') > 1 && address.front() != '[';
  if (v6 || address.find(':') == std::string::npos) return out;
  VIADUCT_TRY(const base::HostPort where, base::parseHostPort(address));
  out.ip = where.host;
  out.port = where.port;
  return out;
}

Error noDiagnosis(const std::string& why) {
  return {.code = Code::kInvalid,
          .operation = "doctor",
          .detail = "the peer shows no diagnosis: " + why,
          .remedy = "run `viaduct doctor --listen IP` on that host"};
}

// Reads the other doctor's diagnosis from its memory.
Result<std::string> readText(Agent& agent, const Peer& peer) {
  const auto there = peer.waitPin(kDiagnosisLabel, 2s);
  if (!there) return noDiagnosis("a plain p2p target listens there, or none");
  if (there->bytes > kMostBytes) return noDiagnosis("it is longer than 16 MiB");
  VIADUCT_TRY(const Pin here, agent.allocate(there->bytes));
  const auto whole = [](const PinInfo& pin) {
    return *Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1});
  };
  VIADUCT_TRY(Transfer transfer, agent.plan(OpKind::kRead, peer, {.blocks = whole(here.info())},
                                            {.blocks = whole(*there)}));
  VIADUCT_CHECK(transfer.post());
  VIADUCT_CHECK(transfer.wait(10s));
  return std::string(reinterpret_cast<const char*>(here.data()), there->bytes);
}

Result<diag::Diagnosis> readDiagnosis(const P2pOptions& options, const Settings& settings) {
  const measure::p2p::Where where{options.ip, options.port};
  VIADUCT_TRY(Agent agent, Agent::open(settings));
  const auto explained = [&](const Error& error) {
    return measure::p2p::unreachable(error, where, !settings.secret.empty());
  };
  const auto peer = agent.connect(where.text());
  if (!peer) return explained(peer.error());
  VIADUCT_CHECK(measure::waitReady(*peer, options.timeout, stopOnSignals(), remark, explained));
  VIADUCT_TRY(const std::string text, readText(agent, *peer));
  return diag::diagnosisFromJson(text);
}

// Redirects standard output to standard error as long as the object lives, so that standard output
// holds JSON alone.
class OutputAside {
 public:
  explicit OutputAside(bool wanted) : kept_(wanted ? ::dup(STDOUT_FILENO) : -1) {
    std::fflush(stdout);
    if (kept_) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~OutputAside() {
    std::fflush(stdout);
    if (kept_) ::dup2(kept_.get(), STDOUT_FILENO);
  }
  OutputAside(const OutputAside&) = delete;
  OutputAside& operator=(const OutputAside&) = delete;

 private:
  const base::Fd kept_;
};

// Returns the results of the measurement, or null if there are none.
base::Json resultsIn(const std::string& file) {
  const auto text = measure::contentOfFile(file);
  if (!text) return nullptr;
  auto json = base::parseJson(*text);
  return json ? *std::move(json) : base::Json(nullptr);
}

}  // namespace

Result<int> runDoctorListen(const DoctorCommand& command, const diag::Diagnosis& own) {
  VIADUCT_TRY(P2pOptions options, optionsFor(command.listen, command));
  options.target = true;
  options.diagnosis = doctorJson(own);
  std::fflush(stdout);
  return runP2p(options) == kExitOk ? doctorExit(own.findings) : kExitNoDiagnosis;
}

Result<int> runDoctorPeer(const DoctorCommand& command, const diag::Diagnosis& own) {
  VIADUCT_TRY(P2pOptions options, optionsFor(command.peer, command));
  options.sizes = {4'000, 16'000'000};
  VIADUCT_TRY(const Settings environment, measuringSettings());
  VIADUCT_TRY(const diag::Diagnosis theirs,
              readDiagnosis(options, settingsFor(options, environment)));
  const base::Fd results(::memfd_create("viaduct-doctor", MFD_CLOEXEC));
  if (!command.json) {
    fmt::print("\n{}\n", doctorText(theirs, command.verbose));
    std::fflush(stdout);
  } else {
    options.out.json = fmt::format("/proc/self/fd/{}", results.get());
  }
  const int measured = [&] {
    const OutputAside aside(command.json);
    return runP2p(options);
  }();
  const int worst = std::max(doctorExit(own.findings), doctorExit(theirs.findings));
  const int code = measured == kExitOk ? worst : std::max<int>(worst, kExitWarnings);
  if (command.json)
    fmt::print("{}\n", base::dumpJson({{"format", "viaduct-doctor-pair/1"},
                                       {"exit_code", code},
                                       {"own", diag::asJson(own)},
                                       {"peer", diag::asJson(theirs)},
                                       {"path", resultsIn(options.out.json)}},
                                      2));
  return code;
}

}  // namespace viaduct::app
