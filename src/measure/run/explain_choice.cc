#include "measure/run/explain_choice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/agent.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/read_fd.h"
#include "host/devices.h"
#include "measure/workload/machine.h"
#include "measure/workload/storage.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kLabel = "explained";
constexpr std::uint64_t kBlock = 4096, kHugePage = std::uint64_t{2} << 20U;
constexpr auto kJoining = 10s;  // longer than any backend needs to find a peer unreachable
constexpr auto kMoving = 5s;    // for one block
constexpr std::size_t kMostCard = std::size_t{1} << 20U;
constexpr int kEnding = 3000;  // milliseconds for the other process to end

std::uint64_t bytesOf(const Buffer::Kind& memory) { return memory.huge_pages ? kHugePage : kBlock; }

Result<Buffer> bufferOf(const ExplainRequest& request, Agent& agent,
                        const std::optional<std::uint32_t>& gpu) {
  Buffer::Kind kind = request.memory;
  if (gpu) {
    VIADUCT_TRY(kind.gpu, gpuOf(request.settings, Mode::kMg, *gpu, 0));
  }
  return Buffer::make(agent, bytesOf(kind), kind, kLabel);
}

// An agent with all requested backends that open, and the errors of the backends that do not.
struct Ends {
  std::optional<Agent> agent = {};  // none: no requested backend opens
  std::vector<BackendInfo> refused = {};
};

Result<Ends> openWhatOpens(Settings settings) {
  Ends out;
  settings.deadline = 1ms;  // do not wait for devices
  auto all = Agent::open(settings);
  if (all) {
    out.agent.emplace(*std::move(all));
    return out;
  }
  if (settings.backends.empty()) return std::move(all).error();
  for (const std::string& name : std::exchange(settings.backends, {})) {
    Settings alone = settings;
    alone.backends = {name};
    if (const auto opened = Agent::open(alone))
      settings.backends.push_back(name);
    else
      out.refused.push_back({.name = name, .text = opened.error().text()});
  }
  if (settings.backends.empty()) return out;
  VIADUCT_TRY(out.agent, Agent::open(settings));
  return out;
}

// Returns settings for this process's agent. Only one agent can have a requested name and requested
// ports, so the other process gets them.
Settings ofThisEnd(Settings settings) {
  if (!settings.name.empty()) settings.name += "-0";
  settings.listen = listenHere(settings.rails);
  return settings;
}

// Reads from the other process until it closes the pipe or an error occurs.
std::string readToEnd(int from) {
  std::string out;
  static_cast<void>(base::readAll(from, out, kMostCard));
  return out;
}

struct Pipe {
  base::Fd out, in;
};
Result<Pipe> makePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return systemError(Code::kExhausted, "pipe", errno);
  return Pipe{base::Fd(ends[0]), base::Fd(ends[1])};
}

// Runs in the other process: sends its card, and waits until the explaining process closes `stay`.
Status serve(const ExplainRequest& request, base::Fd card, const base::Fd& stay) {
  Settings settings = request.settings;
  if (settings.listen == Settings{}.listen) settings.listen = listenHere(settings.rails);
  VIADUCT_TRY(auto ends, openWhatOpens(settings));
  if (!ends.agent) return Ok{};
  VIADUCT_TRY(const Buffer memory, bufferOf(request, *ends.agent, request.target_gpu));
  const std::vector<std::byte> own = ends.agent->exportCard();
  if (base::writeAll(card.get(), {reinterpret_cast<const char*>(own.data()), own.size()}) != 0)
    return Ok{};  // the explaining process has gone
  card = base::Fd();
  readToEnd(stay.get());
  return Ok{};
}

class OtherEnd {
 public:
  static Result<std::unique_ptr<OtherEnd>> start(const ExplainRequest& request) {
    VIADUCT_TRY(Pipe card, makePipe());
    VIADUCT_TRY(Pipe stay, makePipe());
    const pid_t parent = ::getpid(), pid = ::fork();
    if (pid < 0) return systemError(Code::kExhausted, "fork", errno);
    if (pid == 0) {
      ::prctl(PR_SET_NAME, "explain-peer");
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      card.out = base::Fd();
      stay.in = base::Fd();
      // Drops this process's messages, because the explaining process prints the same ones.
      if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
        ::dup2(nowhere, STDERR_FILENO);
      ::_exit(serve(request, std::move(card.in), stay.out) ? 0 : 1);
    }
    card.in = base::Fd();
    stay.out = base::Fd();
    return std::make_unique<OtherEnd>(pid, std::move(card.out), std::move(stay.in));
  }
  OtherEnd(pid_t pid, base::Fd card, base::Fd stay)
      : pid_(pid), card_(std::move(card)), stay_(std::move(stay)) {}
  ~OtherEnd() {
    stay_ = base::Fd();
    const base::Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd watched{.fd = ended.get(), .events = POLLIN, .revents = 0};
    if (::poll(&watched, 1, kEnding) != 1) ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherEnd(const OtherEnd&) = delete;
  OtherEnd& operator=(const OtherEnd&) = delete;

  // Waits for the other process's card. Empty: that process could not open an agent, or has ended.
  std::string card() const { return readToEnd(card_.get()); }

 private:
  const pid_t pid_;
  base::Fd card_, stay_;
};

struct TwoEnds {
  Agent& agent;
  const Peer& peer;
  const Buffer& here;
  std::uint64_t there = 0;  // the address of a block at the peer
  const std::string& require;
};

Result<Path> moveOne(const TwoEnds& ends, OpKind op, std::string require) {
  VIADUCT_TRY(Blocks here,
              Blocks::strided({.base = ends.here.address(), .bytes = kBlock, .count = 1}));
  VIADUCT_TRY(Blocks there, Blocks::strided({.base = ends.there, .bytes = kBlock, .count = 1}));
  VIADUCT_TRY(Transfer transfer,
              ends.agent.plan(op, ends.peer, {.blocks = std::move(here)},
                              {.blocks = std::move(there)}, {.require = std::move(require)}));
  VIADUCT_CHECK(transfer.post({.deadline = Deadline(kMoving)}));
  VIADUCT_CHECK(transfer.wait());
  return transfer.path();
}

Attempt attempt(const TwoEnds& ends, OpKind op, const PeerWay& way) {
  if (!way.usable) return {.op = op, .text = "it has no connection to the other process"};
  const std::string only = "backend:" + way.backend;
  auto moved = moveOne(ends, op, ends.require.empty() ? only : only + "," + ends.require);
  if (moved) {
    const bool staged = std::ranges::any_of(moved->shares, &PathShare::stage);
    return {.op = op, .carried = true, .staged = staged, .text = moved->text()};
  }
  if (!ends.require.empty() && moveOne(ends, op, only))
    return {.op = op, .text = fmt::format("--require {} forbids this path", ends.require)};
  return {.op = op, .text = moved.error().text()};
}

Status tryAll(Agent& agent, const OtherEnd& other, const Buffer& here,
              const ExplainRequest& request, std::vector<ExplainedBackend>& backends) {
  VIADUCT_TRY(const Peer peer, agent.importCard(base::bytesOf(other.card())));
  VIADUCT_CHECK(peer.ready(kJoining));
  VIADUCT_TRY(const PinInfo there, peer.waitPin(kLabel, kJoining));
  const TwoEnds ends{agent, peer, here, there.address, request.require};
  const std::vector<PeerWay> ways = peer.ways();
  for (ExplainedBackend& backend : backends)
    for (const PeerWay& way : ways) {
      if (!backend.info.open || way.backend != backend.info.name) continue;
      backend.link = way.text;
      for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
        backend.attempts.push_back(attempt(ends, op, way));
    }
  return Ok{};
}

std::vector<NamedNic> nicsHere() {
  std::vector<NamedNic> out;
  for (const host::Device& device : host::namedDevices())
    out.push_back({device.name, device.addresses});
  return out;
}

void addServing(const BackendInfo& backend, const Buffer& here, std::vector<Serving>& out) {
  const std::vector<NamedNic> known = nicsHere();
  std::vector<std::string> names;
  for (const std::string& rail : backend.rails)
    if (std::string nic = nicOfRail(rail, known);
        !nic.empty() && std::find(names.begin(), names.end(), nic) == names.end())
      names.push_back(std::move(nic));
  if (names.empty()) return;
  const std::vector<host::Nic> nics = host::nicsNamed(names);
  const host::Nodes nodes = host::numaNodes();
  const auto add = [&](std::string memory, const host::Place& place) {
    out.push_back({backend.name, std::move(memory), host::byNearness(place, nics, nodes)});
  };
  const auto bytes = here.bytes();
  if (here.mirror() == nullptr)
    add("this memory", {.node = host::nodeOfMemory(bytes.data(), bytes.size())});
  if (nodes.several())
    for (const int node : nodes.numbers) add(fmt::format("node {}", node), {.node = node});
  for (const std::string& gpu : host::gpuAddresses())
    add("GPU " + gpu, host::placeAt({}, host::kPciFunctions + gpu));
}

std::vector<causes::Cause> causesHere(const ExplainRequest& request) {
  causes::Scene scene = causes::hereAndNow({}, host::linkFacts());
  scene.threads = request.threads;
  return causes::causesOf(scene);
}

// Returns the first backend that carries `op` directly, or else the first that carries it staged.
// If `far` is set, skips backends that only work within one host.
const ExplainedBackend* firstOf(const std::vector<ExplainedBackend>& all, OpKind op, bool far) {
  for (const bool staged : {false, true})
    for (const ExplainedBackend& one : all)
      if (one.carries(op, staged) && !(far && one.info.same_host)) return &one;
  return nullptr;
}

}  // namespace

bool ExplainedBackend::carries(OpKind op, bool staged) const {
  return std::ranges::any_of(attempts, [&](const Attempt& one) {
    return one.op == op && one.carried && one.staged == staged;
  });
}

const ExplainedBackend* Explanation::chosen(OpKind op) const {
  return firstOf(backends, op, false);
}
const ExplainedBackend* Explanation::betweenHosts(OpKind op) const {
  return firstOf(backends, op, true);
}

std::string nicOfRail(const std::string& rail, const std::vector<NamedNic>& nics) {
  for (const NamedNic& nic : nics)
    if (nic.name == rail ||
        std::find(nic.addresses.begin(), nic.addresses.end(), rail) != nic.addresses.end())
      return nic.name;
  const std::string front = rail.substr(0, rail.find_last_of("#:-"));
  return front.size() < rail.size() ? nicOfRail(front, nics) : std::string();
}

Result<Explanation> explainChoice(const ExplainRequest& request) {
  Explanation out{.asked = request, .causes = causesHere(request)};
  VIADUCT_TRY(const auto other, OtherEnd::start(request));
  VIADUCT_TRY(auto ends, openWhatOpens(ofThisEnd(request.settings)));
  if (ends.agent)
    for (BackendInfo& info : ends.agent->backends()) {
      const bool refused =
          std::any_of(ends.refused.begin(), ends.refused.end(),
                      [&](const BackendInfo& one) { return one.name == info.name; });
      if (!refused) out.backends.push_back({.info = std::move(info)});
    }
  for (BackendInfo& info : ends.refused) out.backends.push_back({.info = std::move(info)});
  if (!ends.agent) return out;
  VIADUCT_TRY(const Buffer here, bufferOf(request, *ends.agent, request.initiator_gpu));
  std::memset(here.bytes().data(), 0, here.bytes().size());
  VIADUCT_CHECK(tryAll(*ends.agent, *other, here, request, out.backends));
  for (const ExplainedBackend& backend : out.backends)
    if (backend.info.open && !backend.info.same_host) addServing(backend.info, here, out.serving);
  return out;
}

Result<Explanation> explainStorage(const ExplainRequest& request, Spec spec) {
  Explanation out{.asked = request, .stored = true, .causes = causesHere(request)};
  spec.rows.resize(1);
  spec.rows[0].block_bytes = kBlock;
  spec.rows[0].batch = 1;
  spec.layout.initiators = 1;
  spec.threads = spec.depth = 1;
  spec.buffer_bytes = spec.working_set = 0;
  VIADUCT_TRY(Agent agent, Agent::open(request.settings));
  VIADUCT_TRY(const Peer self, agent.self());
  VIADUCT_TRY(const DeviceBytes bytes, deviceBytes(spec));
  VIADUCT_TRY(const auto storage, Storage::make(agent, self, spec, bytes, 0));
  VIADUCT_TRY(const Buffer here, bufferOf(request, agent, request.initiator_gpu));
  VIADUCT_CHECK(storage->begin(spec.rows[0]));
  if (!storage->isGiven()) VIADUCT_CHECK(storage->store({}));
  VIADUCT_TRY(const Blocks blocks, storage->blocks({}));
  const TwoEnds ends{agent, self, here, blocks[0].address, request.require};
  for (BackendInfo& info : agent.backends()) {
    ExplainedBackend& one = out.backends.emplace_back(ExplainedBackend{.info = std::move(info)});
    for (const PeerWay& way : self.ways())
      if (one.info.open && way.backend == one.info.name && backendFacts(way.backend) != nullptr)
        one.attempts.push_back(attempt(ends, spec.rows[0].op, way));
  }
  return out;
}

}  // namespace viaduct::measure
