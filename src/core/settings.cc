#include <fmt/format.h>
#include <viaduct/backend.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/lists.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/sizes.h"
#include "base/text.h"
#include "core/fault_plan.h"
#include "core/setting_row.h"

namespace viaduct {
namespace {

constexpr std::uint64_t kLeastMinChunk = 4096, kMostMinChunk = std::uint64_t{1} << 40U;

bool isMinChunk(std::uint64_t bytes) {
  return bytes == 0 || (bytes >= kLeastMinChunk && bytes <= kMostMinChunk);
}

Status intoMinChunk(std::string_view text, std::uint64_t& into) {
  const auto size = text == "auto" ? 0 : base::parseSize(text);
  if (!size || !isMinChunk(*size))
    return core::expectedForm(fmt::format("a size like 16KiB, from {} to {}, or auto",
                                          base::formatSize(kLeastMinChunk),
                                          base::formatSize(kMostMinChunk)));
  into = *size;
  return Ok{};
}

std::string showMinChunk(std::uint64_t bytes) {
  return bytes == 0 ? "auto" : base::formatSize(bytes);
}

Status checkMinChunk(const Settings& settings) {
  if (isMinChunk(settings.min_chunk)) return Ok{};
  return core::checkSize(settings.min_chunk, kLeastMinChunk, kMostMinChunk);
}

// Accepts other benchmarks' names for backends.
Status intoBackends(std::string_view text, std::vector<std::string>& into) {
  VIADUCT_CHECK(core::parseWords(text, into));
  for (std::string& name : into)
    for (const BackendFacts& backend : backendFacts())
      if (base::contains(backend.aliases, name)) name = backend.name;
  return Ok{};
}

bool hostAndPort(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find_first_of(":[]") != std::string_view::npos) return false;
  const auto port = base::parseCount(text.substr(colon + 1));
  return port && *port <= std::numeric_limits<std::uint16_t>::max();
}

Status intoListen(std::string_view text, std::vector<std::string>& into) {
  constexpr auto kForm = "host:port or [v6]:port, several joined by commas, or the word none";
  std::vector<std::string> words;
  if (text != "none") VIADUCT_CHECK(core::parseList(text, kForm, words));
  for (const std::string& word : words)
    if (!hostAndPort(word)) return core::expectedForm(kForm);
  into = std::move(words);
  return Ok{};
}

constexpr auto kMetricsForm = "a port of loopback like 27180, host:port or [v6]:port";

bool portOrHostAndPort(std::string_view text) {
  const auto port = base::parseCount(text);
  return port ? *port <= std::numeric_limits<std::uint16_t>::max() : hostAndPort(text);
}

Status intoMetrics(std::string_view text, std::string& into) {
  if (!text.empty() && !portOrHostAndPort(text)) return core::expectedForm(kMetricsForm);
  into = text;
  return Ok{};
}

Status checkMetrics(const Settings& settings) {
  if (settings.metrics.empty() || portOrHostAndPort(settings.metrics)) return Ok{};
  return Error{.code = Code::kInvalid,
               .operation = "settings",
               .detail = fmt::format("\"{}\" is no address", settings.metrics),
               .remedy = kMetricsForm};
}

// Refuses only blanks. The code that connects to the place reports other mistakes.
Status intoMeet(std::string_view text, std::string& into) {
  if (text.find_first_of(" \t\n") != std::string_view::npos)
    return core::expectedForm("host:port of a meeting place, or http://host:port of etcd");
  into = text;
  return Ok{};
}

// Accepts endpoints as etcd's own tools do: "http://" may be left out.
Status intoEndpoints(std::string_view text, std::string& into) {
  std::vector<std::string> words;
  constexpr auto kForm = "etcd endpoints like http://host:2379, joined by commas";
  VIADUCT_CHECK(core::parseList(text, kForm, words));
  for (std::string& word : words)
    if (word.find("://") == std::string::npos) word.insert(0, "http://");
  return intoMeet(fmt::format("{}", fmt::join(words, ",")), into);
}

// NIXL too refuses two places, etcd and TCPStore. The row of etcd stands before this one.
Status intoTcpStore(std::string_view text, std::string& into) {
  if (text.empty()) return Ok{};  // the fallback
  if (!into.empty()) return core::expectedForm("without NIXL_ETCD_ENDPOINTS");
  if (!hostAndPort(text)) return core::expectedForm("host:port of torch.distributed's TCPStore");
  return intoMeet(fmt::format("tcpstore:{}", text), into);
}

// The longest name that a handshake can carry: docs/wire.md.
constexpr std::size_t kMostNameBytes = 255;

Status checkName(const Settings& settings) {
  const auto bad = [](std::string detail, const char* remedy) {
    return Error{.code = Code::kInvalid,
                 .operation = "settings",
                 .detail = std::move(detail),
                 .remedy = remedy};
  };
  if (settings.name.size() > kMostNameBytes)
    return bad(fmt::format("{} bytes; the limit is {}", settings.name.size(), kMostNameBytes),
               "choose a shorter name");
  if (!base::isPrintable(settings.name))
    return bad("contains a control character, or bytes that are not UTF-8",
               "choose a printable name");
  return Ok{};
}

constexpr SettingRow checked(SettingRow row, Status (*check)(const Settings&)) {
  row.check = check;
  return row;
}
constexpr SettingRow insteadOf(std::string_view other, SettingRow row) {
  row.instead_of = other;
  return row;
}

constexpr std::int64_t kHour = 3'600'000;  // in milliseconds

// The agent's settings. A setting that only one backend reads is in that backend's facts.h.
constexpr std::array kAgentRows{
    checked(
        core::ofHost(core::textSetting<&Settings::name>(
            "VIADUCT_NAME",
            "Name that peers see; by default the host name, the process id and a random part.")),
        checkName),
    core::ofHost(core::settingRow<&Settings::listen, intoListen, core::showList>(
        "VIADUCT_LISTEN", "127.0.0.1:0",
        "Addresses to listen on, joined by commas: host:port or [v6]:port. Port 0 takes a "
        "free port. With none, only processes of this host can connect.")),
    core::unrecorded(core::textSetting<&Settings::secret>(
        "VIADUCT_SECRET",
        "Secret shared by a group of agents; by default each agent has its own.")),
    core::settingRow<&Settings::insecure, core::parseFlag, core::showFlag>(
        "VIADUCT_INSECURE", "no",
        "Accept every peer that reaches the socket, without a secret: yes or no."),
    core::settingRow<&Settings::fabric_is_private, core::parseFlag, core::showFlag>(
        "VIADUCT_FABRIC_IS_PRIVATE", "no",
        "The fabric under ofi and ucx encrypts by itself, as with IPsec in its NICs: yes or no. "
        "Only your word makes these backends meet the requirement \"encrypted\"."),
    core::settingRow<&Settings::backends, intoBackends, core::showList>(
        "VIADUCT_BACKENDS", "",
        "Backends to use, joined by commas; by default all that are built in."),
    core::ofHost(core::listSetting<&Settings::rails>(
        "VIADUCT_RAILS",
        "Source addresses, interfaces or RDMA devices to send from, joined by commas. By "
        "default the system chooses one; RDMA uses all devices near this process's CPUs.")),
    core::toggleSetting<&Settings::striping>(
        "VIADUCT_STRIPING",
        "Divides a transfer among several rails. auto: if each rail gets VIADUCT_MIN_CHUNK; "
        "on: always, down to 4KiB per rail; off: never."),
    checked(core::settingRow<&Settings::min_chunk, intoMinChunk, showMinChunk>(
                "VIADUCT_MIN_CHUNK", "auto",
                "Least bytes per rail when a transfer is divided; auto: 16KiB, or the backend's "
                "own value."),
            checkMinChunk),
    core::durationSetting<&Settings::detect, 20, 24 * kHour>(
        "VIADUCT_DETECT", "2s",
        "A peer is lost after three quarters of this time to all of it without a frame. Set it to "
        "at least twice the longest pause of a healthy peer."),
    core::durationSetting<&Settings::deadline, 1, std::int64_t{365} * 24 * kHour>(
        "VIADUCT_DEADLINE", "30s", "Time limit of a post that names no deadline."),
    core::durationSetting<&Settings::grace, 1, kHour>(
        "VIADUCT_GRACE", "500ms",
        "Longest time from a deadline or a cancel to the end of the transfer."),
    core::durationSetting<&Settings::spin, 0, 10'000'000>(
        "VIADUCT_SPIN", "50us",
        "Time that a wait spins before it sleeps, and that a connection is polled after its "
        "last byte."),
    checked(core::unrecorded(core::settingRow<&Settings::metrics, intoMetrics, core::showText>(
                "VIADUCT_METRICS", "",
                "Serves the agents' statistics to Prometheus: a port of loopback such as 27180, or "
                "host:port. Processes of one user share it. Port 0 takes a free one. By default "
                "off.")),
            checkMetrics),
    core::sizeSetting<&Settings::note_backlog, 1, std::uint64_t{1} << 40U>(
        "VIADUCT_NOTE_BACKLOG", "64MiB",
        "Memory for received notes that the application has not taken, at most half of it for one "
        "peer. A sender waits while it is full."),
    core::sizeSetting<&Settings::staging_chunk, std::uint64_t{64} << 10U,
                      std::uint64_t{256} << 20U>(
        "VIADUCT_STAGING_CHUNK", "2MiB",
        "Size of the chunks of host memory through which transfers with a peer's files and objects "
        "go."),
    core::countSetting<&Settings::staging_chunks, 2, 1024>(
        "VIADUCT_STAGING_CHUNKS", "16", "Chunks for the transfers of one peer, at each end."),
    core::sizeSetting<&Settings::staging_memory, std::uint64_t{1} << 20U, std::uint64_t{1} << 50U>(
        "VIADUCT_STAGING_MEMORY", "256MiB",
        "Most memory for the chunks of all peers. Peers beyond it take turns."),
    core::unrecorded(core::settingRow<&Settings::meet, intoMeet, core::showText>(
        "VIADUCT_MEET", "",
        "Meeting place where agents register and find each other by name: host:port of "
        "`viaduct meet`, http://host:port of etcd, tcpstore:host:port, or another address of "
        "docs/meeting.md.")),
    core::unrecorded(core::textSetting<&Settings::name_space>(
        "VIADUCT_NAMESPACE", "Namespace of the names at the meeting place; by default /viaduct.")),
    core::unrecorded(
        core::textSetting<&Settings::meet_user>("VIADUCT_MEET_USER", "User name for etcd.")),
    core::unrecorded(
        core::textSetting<&Settings::meet_password>("VIADUCT_MEET_PASSWORD", "Password for etcd.")),
    core::unrecorded(core::textSetting<&Settings::meet_ca>(
        "VIADUCT_MEET_CA", "File with the CA certificates that verify the etcd server.")),
    core::unrecorded(core::textSetting<&Settings::meet_certificate>(
        "VIADUCT_MEET_CERTIFICATE", "File with the client certificate for etcd.")),
    core::unrecorded(core::textSetting<&Settings::meet_key>(
        "VIADUCT_MEET_KEY", "File with the private key of the client certificate.")),
    checked(core::textSetting<&Settings::faults>(
                "VIADUCT_FAULTS",
                "Faults to inject, to test how a program recovers from them: docs/faults.md. Such "
                "as seed=7,delay=2ms@0.01,stop@op:1000,drop-rail@5s."),
            core::checkFaults),
    core::settingRow<&Settings::faults_allowed, core::parseFlag, core::showFlag>(
        "VIADUCT_FAULTS_ALLOWED", "no",
        "Allows VIADUCT_FAULTS, which is refused otherwise: yes or no."),
    insteadOf("VIADUCT_MEET",
              core::unrecorded(core::settingRow<&Settings::meet, intoEndpoints, core::showText>(
                  "NIXL_ETCD_ENDPOINTS", "",
                  "Alias of VIADUCT_MEET for etcd, read if VIADUCT_MEET is unset."))),
    insteadOf("VIADUCT_MEET",
              core::unrecorded(core::settingRow<&Settings::meet, intoTcpStore, core::showText>(
                  "NIXL_TCPSTORE_ENDPOINT", "",
                  "Alias of VIADUCT_MEET for a TCPStore, host:port, read if VIADUCT_MEET is unset. "
                  "Not together with NIXL_ETCD_ENDPOINTS."))),
    insteadOf("VIADUCT_NAMESPACE",
              core::unrecorded(core::textSetting<&Settings::name_space>(
                  "NIXL_ETCD_NAMESPACE",
                  "Alias of VIADUCT_NAMESPACE, read if VIADUCT_NAMESPACE is unset."))),
};

std::vector<SettingRow> allRows() {
  std::vector<SettingRow> rows(kAgentRows.begin(), kAgentRows.end());
  for (const BackendFacts& backend : backendFacts())
    rows.insert(rows.end(), backend.settings.begin(), backend.settings.end());
  return rows;
}

// An empty variable counts as unset, so that a deployment file can undo a setting.
const char* valueOf(std::string_view variable) {
  const char* text = base::variable(std::string(variable).c_str());
  return text == nullptr || *text == '\0' ? nullptr : text;
}

constexpr std::string_view kOurs = "VIADUCT_";

// A missing middle word counts as one letter: VIADUCT_PROVIDER is near VIADUCT_OFI_PROVIDER.
std::size_t distanceOf(std::string_view variable, std::string_view setting) {
  if (!variable.starts_with(kOurs)) return base::distance(variable, setting);
  variable.remove_prefix(kOurs.size());
  const std::string tail = fmt::format("_{}", variable);
  if (setting.starts_with(kOurs)) setting.remove_prefix(kOurs.size());
  return setting.ends_with(tail) ? 1 : base::distance(variable, setting);
}

// A short name allows fewer mistakes, because short names are near each other by chance.
std::size_t mostMistakes(std::string_view variable) {
  constexpr std::size_t kLettersForEach = 4;
  const std::size_t letters = variable.size() - std::min(kOurs.size(), variable.size());
  return std::min<std::size_t>(letters / kLettersForEach, 2);
}

bool isKnown(std::string_view variable) {
  return variable == "VIADUCT_LOG" ||
         std::any_of(settingRows().begin(), settingRows().end(),
                     [&](const SettingRow& row) { return row.variable == variable; });
}

// Other variables with this prefix belong to the build, or to a pod: Kubernetes sets VIADUCT_PORT
// for a service called viaduct.
void warnOfVariables() {
  static std::atomic_flag said;
  if (said.test_and_set()) return;
  if (!base::environmentIsTrusted())
    return base::log(base::LogLevel::kWarning,
                     "the settings in the environment are ignored: this program runs with other "
                     "rights than its user (setuid, setgid or file capabilities)");
  for (const std::string& one : base::environmentOf(kOurs)) {
    const std::string variable = one.substr(0, one.find('='));
    const std::string_view meant = isKnown(variable) ? "" : nearestSetting(variable);
    if (!meant.empty())
      base::log(base::LogLevel::kWarning, "there is no setting {}: did you mean {}?", variable,
                meant);
  }
}

}  // namespace

std::span<const SettingRow> settingRows() {
  static const std::vector<SettingRow> rows = allRows();
  return rows;
}

std::string settingField(std::string_view variable) {
  return base::lower(variable.substr(kOurs.size()));
}

std::string_view nearestSetting(std::string_view variable) {
  std::string_view best;
  std::size_t least = variable.size();
  for (const SettingRow& row : settingRows()) {
    const std::size_t apart = distanceOf(variable, row.variable);
    if (apart <= mostMistakes(variable) && apart < least) {
      best = row.variable;
      least = apart;
    }
  }
  return best;
}

Status checkSettings(const Settings& settings) {
  for (const SettingRow& row : settingRows()) {
    if (row.check == nullptr) continue;
    Status checked = row.check(settings);
    if (checked) continue;
    Error error = std::move(checked).error();
    error.operation = fmt::format("settings: {}", settingField(row.variable));
    error.remedy = fmt::format("{} ({})", error.remedy, row.variable);
    return error;
  }
  return Ok{};
}

Result<Settings> settingsFromEnvironment() {
  warnOfVariables();
  Settings out;
  for (const SettingRow& row : settingRows()) {
    const char* text = valueOf(row.variable);
    if (text == nullptr || (!row.instead_of.empty() && valueOf(row.instead_of) != nullptr))
      continue;
    auto parsed = row.parse(text, out);
    if (parsed) continue;
    Error error = std::move(parsed).error();
    error.detail = fmt::format("{}={} cannot be read", row.variable, base::withoutUser(text));
    error.remedy = fmt::format("give {} {}, or unset it", row.variable, error.remedy);
    return error;
  }
  return out;
}

}  // namespace viaduct
