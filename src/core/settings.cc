#include <fmt/format.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/environment.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/sizes.h"

namespace viaduct {
namespace {

// The error of a row's parser. The caller adds the variable and the value.
Error expected(std::string form) {
  return {.code = Code::kInvalid, .operation = "settings", .remedy = std::move(form)};
}

Status intoText(std::string_view text, std::string& into) {
  into = text;
  return Ok{};
}

Status intoFlag(std::string_view text, bool& into) {
  constexpr std::array<std::string_view, 4> kYes{"1", "yes", "true", "on"};
  constexpr std::array<std::string_view, 4> kNo{"0", "no", "false", "off"};
  into = std::find(kYes.begin(), kYes.end(), text) != kYes.end();
  if (into || std::find(kNo.begin(), kNo.end(), text) != kNo.end()) return Ok{};
  return expected("1, yes, true, on, or 0, no, false, off");
}

// A range that includes both bounds.
template <class T>
struct Range {
  T least, most;
};

template <class T>
Status within(const Range<T>& range, T value, std::string (*show)(T)) {
  if (value >= range.least && value <= range.most) return Ok{};
  return Error{.code = Code::kInvalid,
               .operation = "settings",
               .detail = fmt::format("{} is out of range", show(value)),
               .remedy = fmt::format("from {} to {}", show(range.least), show(range.most))};
}

std::string showCount(std::uint64_t count) { return std::to_string(count); }

template <class Time>
std::string showTime(Time time) {
  // Printed in its own unit, because a time that a program has set may overflow nanoseconds.
  constexpr bool kMillis = std::is_same_v<Time, std::chrono::milliseconds>;
  return fmt::format("{}{}", time.count(), kMillis ? "ms" : "us");
}

Status intoCount(std::string_view text, const Range<std::uint64_t>& range, std::uint32_t& into) {
  const auto count = base::parseCount(text);
  if (!count || !within(range, *count, showCount))
    return expected(fmt::format("a whole number from {} to {}", range.least, range.most));
  into = static_cast<std::uint32_t>(*count);
  return Ok{};
}

template <class Time>
Status intoDuration(std::string_view text, const Range<Time>& range, Time& into) {
  const auto time = base::parseDuration(text);
  if (!time || *time < range.least || *time > range.most ||
      *time % Time(1) != std::chrono::nanoseconds(0))
    return expected(fmt::format("a duration like 2s, 500ms or 20us, in whole {}, from {} to {}",
                                std::is_same_v<Time, std::chrono::milliseconds> ? "ms" : "us",
                                base::formatDuration(range.least),
                                base::formatDuration(range.most)));
  into = std::chrono::duration_cast<Time>(*time);
  return Ok{};
}

Status intoSize(std::string_view text, const Range<std::uint64_t>& range, std::uint64_t& into) {
  const auto size = base::parseSize(text);
  if (!size || !within(range, *size, base::formatSize))
    return expected(fmt::format("a size like 64MiB or 65536, from {} to {}",
                                base::formatSize(range.least), base::formatSize(range.most)));
  into = *size;
  return Ok{};
}

Status intoMinChunk(std::string_view text, const Range<std::uint64_t>& range, std::uint64_t& into) {
  const auto size = text == "auto" ? 0 : base::parseSize(text);
  if (!size || (*size != 0 && !within(range, *size, base::formatSize)))
    return expected(fmt::format("a size like 16KiB, from {} to {}, or auto",
                                base::formatSize(range.least), base::formatSize(range.most)));
  into = *size;
  return Ok{};
}

Status intoPorts(std::string_view text, PortRange& into) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint16_t>::max();
  into = {};
  if (text.empty()) return Ok{};
  const auto dash = text.find('-');
  const auto first = base::parseCount(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : base::parseCount(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last || *last > kMost)
    return expected("a port like 7100, or a range like 7100-7199, within 1 to 65535");
  into = {static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
  return Ok{};
}

Status intoToggle(std::string_view text, Toggle& into) {
  if (text == "auto")
    into = Toggle::kAuto;
  else if (text == "on" || text == "off")
    into = text == "on" ? Toggle::kOn : Toggle::kOff;
  else
    return expected("auto, on or off");
  return Ok{};
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Splits words at commas. `form` is the error's remedy if a word is empty.
Status intoList(std::string_view text, const char* form, std::vector<std::string>& into) {
  std::vector<std::string> words;
  for (bool more = !trim(text).empty(); more;) {
    const auto comma = text.find(',');
    words.emplace_back(trim(text.substr(0, comma)));
    if (words.back().empty()) return expected(form);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  into = std::move(words);
  return Ok{};
}

constexpr auto kWords = "names joined by commas";

// Accepts other benchmarks' names for backends.
Status intoBackends(std::string_view text, std::vector<std::string>& into) {
  VIADUCT_CHECK(intoList(text, kWords, into));
  std::replace(into.begin(), into.end(), std::string("UCX"), std::string("ucx"));
  std::replace(into.begin(), into.end(), std::string("LIBFABRIC"), std::string("ofi"));
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
  if (text != "none") VIADUCT_CHECK(intoList(text, kForm, words));
  for (const std::string& word : words)
    if (!hostAndPort(word)) return expected(kForm);
  into = std::move(words);
  return Ok{};
}

constexpr auto kMetricsForm = "a port of loopback like 27180, host:port or [v6]:port";

bool portOrHostAndPort(std::string_view text) {
  const auto port = base::parseCount(text);
  return port ? *port <= std::numeric_limits<std::uint16_t>::max() : hostAndPort(text);
}

Status intoMetrics(std::string_view text, std::string& into) {
  if (!text.empty() && !portOrHostAndPort(text)) return expected(kMetricsForm);
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
    return expected("host:port of a meeting place, or http://host:port of etcd");
  into = text;
  return Ok{};
}

// Accepts endpoints as etcd's own tools do: "http://" may be left out.
Status intoEndpoints(std::string_view text, std::string& into) {
  std::vector<std::string> words;
  constexpr auto kForm = "etcd endpoints like http://host:2379, joined by commas";
  VIADUCT_CHECK(intoList(text, kForm, words));
  for (std::string& word : words)
    if (word.find("://") == std::string::npos) word.insert(0, "http://");
  return intoMeet(fmt::format("{}", fmt::join(words, ",")), into);
}

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Larger values of the first two would overwhelm a host with threads and sockets. Times within
// these ranges fit into handshakes, and can be added to the present time without overflow.
constexpr Range<std::uint64_t> kSockets{1, 64};
constexpr Range<std::uint64_t> kCopyThreads{0, 256};
constexpr Range<std::uint64_t> kPopulate{0, std::uint64_t{1} << 44U};
constexpr Range<std::uint64_t> kMinChunk{4096, std::uint64_t{1} << 40U};
constexpr Range<std::uint64_t> kNoteBacklog{1, std::uint64_t{1} << 40U};
constexpr Range<milliseconds> kDetect{milliseconds(20), hours(24)};
constexpr Range<milliseconds> kDeadline{milliseconds(1), hours(24 * 365)};
constexpr Range<milliseconds> kGrace{milliseconds(1), hours(1)};
constexpr Range<microseconds> kSpin{microseconds(0), seconds(10)};
// The room that a handshake has for a name: docs/wire.md.
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
  if (settings.name.find('\0') != std::string::npos)
    return bad("contains a NUL byte", "choose a printable name");
  return Ok{};
}

constexpr std::array kRows{
    SettingRow{"VIADUCT_NAME",
               "",
               "Name that peers see; by default the host name, the process id and a random part.",
               [](std::string_view t, Settings& s) { return intoText(t, s.name); },
               {},
               checkName},
    SettingRow{"VIADUCT_LISTEN", "127.0.0.1:0",
               "Addresses to listen on, joined by commas: host:port or [v6]:port. Port 0 takes a "
               "free port. With none, only processes of this host can connect.",
               [](std::string_view t, Settings& s) { return intoListen(t, s.listen); }},
    SettingRow{"VIADUCT_SECRET", "",
               "Secret shared by a group of agents; by default each agent has its own.",
               [](std::string_view t, Settings& s) { return intoText(t, s.secret); }},
    SettingRow{"VIADUCT_INSECURE", "no",
               "Accept every peer that reaches the socket, without a secret: yes or no.",
               [](std::string_view t, Settings& s) { return intoFlag(t, s.insecure); }},
    SettingRow{"VIADUCT_BACKENDS", "",
               "Backends to use, joined by commas; by default all that are built in.",
               [](std::string_view t, Settings& s) { return intoBackends(t, s.backends); }},
    SettingRow{"VIADUCT_RAILS", "",
               "Source addresses, interfaces or RDMA devices to send from, joined by commas. By "
               "default the system chooses one; RDMA uses all devices near this process's CPUs.",
               [](std::string_view t, Settings& s) { return intoList(t, kWords, s.rails); }},
    SettingRow{
        "VIADUCT_SOCKETS",
        "1",
        "TCP sockets per rail and peer, 1 to 64.",
        [](std::string_view t, Settings& s) { return intoCount(t, kSockets, s.sockets); },
        {},
        [](const Settings& s) { return within<std::uint64_t>(kSockets, s.sockets, showCount); }},
    SettingRow{"VIADUCT_TCP_PORTS", "",
               "Ports on which the tcp backend listens for data, such as 7100 or 7100-7199. Open "
               "them in firewalls. Each agent of a host takes one. By default the system chooses.",
               [](std::string_view t, Settings& s) { return intoPorts(t, s.tcp_ports); }},
    SettingRow{"VIADUCT_STRIPING", "auto",
               "Divides a transfer among several rails. auto: if each rail gets VIADUCT_MIN_CHUNK; "
               "on: always, down to 4KiB per rail; off: never.",
               [](std::string_view t, Settings& s) { return intoToggle(t, s.striping); }},
    SettingRow{
        "VIADUCT_MIN_CHUNK",
        "auto",
        "Least bytes per rail when a transfer is divided; auto: 16KiB, or the backend's own value.",
        [](std::string_view t, Settings& s) { return intoMinChunk(t, kMinChunk, s.min_chunk); },
        {},
        [](const Settings& s) {
          return s.min_chunk == 0 ? Status(Ok{}) : within(kMinChunk, s.min_chunk, base::formatSize);
        }},
    SettingRow{"VIADUCT_OFI_PROVIDER", "",
               "For the ofi backend: the libfabric provider, named as in fi_info; by default the "
               "best available one.",
               [](std::string_view t, Settings& s) { return intoText(t, s.ofi_provider); }},
    SettingRow{"VIADUCT_INJECT", "auto",
               "For the ofi backend: copies a small write into its work request. auto and on: up "
               "to the provider's limit; off: never.",
               [](std::string_view t, Settings& s) { return intoToggle(t, s.inject); }},
    SettingRow{"VIADUCT_DOORBELL", "auto",
               "For the ofi backend: rings one doorbell for several work requests. auto: on RDMA; "
               "on: always; off: never.",
               [](std::string_view t, Settings& s) { return intoToggle(t, s.doorbell); }},
    SettingRow{
        "VIADUCT_COPY_THREADS",
        "0",
        "Threads for copies on this host, up to 256; 0 chooses by the number of cores.",
        [](std::string_view t, Settings& s) { return intoCount(t, kCopyThreads, s.copy_threads); },
        {},
        [](const Settings& s) {
          return within<std::uint64_t>(kCopyThreads, s.copy_threads, showCount);
        }},
    SettingRow{"VIADUCT_WIDE_COPIES", "auto",
               "On one host: whether copies of 64KiB or more write past the cache. auto: if their "
               "first pieces were not in the cache; on: always; off: never.",
               [](std::string_view t, Settings& s) { return intoToggle(t, s.wide_copies); }},
    SettingRow{
        "VIADUCT_POPULATE",
        "4GiB",
        "Limit of the shared memory that an agent populates in the background after pinning. The "
        "same limit holds for the peers' memory that it maps ahead of use. 0: none.",
        [](std::string_view t, Settings& s) { return intoSize(t, kPopulate, s.populate); },
        {},
        [](const Settings& s) { return within(kPopulate, s.populate, base::formatSize); }},
    SettingRow{"VIADUCT_DETECT",
               "2s",
               "A peer that is silent for this long is lost.",
               [](std::string_view t, Settings& s) { return intoDuration(t, kDetect, s.detect); },
               {},
               [](const Settings& s) { return within(kDetect, s.detect, showTime); }},
    SettingRow{
        "VIADUCT_DEADLINE",
        "30s",
        "Time limit of a post that names no deadline.",
        [](std::string_view t, Settings& s) { return intoDuration(t, kDeadline, s.deadline); },
        {},
        [](const Settings& s) { return within(kDeadline, s.deadline, showTime); }},
    SettingRow{"VIADUCT_GRACE",
               "500ms",
               "Longest time from a deadline or a cancel to the end of the transfer.",
               [](std::string_view t, Settings& s) { return intoDuration(t, kGrace, s.grace); },
               {},
               [](const Settings& s) { return within(kGrace, s.grace, showTime); }},
    SettingRow{"VIADUCT_SPIN",
               "50us",
               "Time that a wait spins before it sleeps, and that a connection is polled after its "
               "last byte.",
               [](std::string_view t, Settings& s) { return intoDuration(t, kSpin, s.spin); },
               {},
               [](const Settings& s) { return within(kSpin, s.spin, showTime); }},
    SettingRow{
        "VIADUCT_METRICS",
        "",
        "Serves the agents' statistics to Prometheus: a port of loopback such as 27180, or "
        "host:port. Processes of one user share it. Port 0 takes a free one. By default off.",
        [](std::string_view t, Settings& s) { return intoMetrics(t, s.metrics); },
        {},
        checkMetrics},
    SettingRow{
        "VIADUCT_NOTE_BACKLOG",
        "64MiB",
        "Memory for received notes that the application has not taken, at most half of it for one "
        "peer. A sender waits while it is full.",
        [](std::string_view t, Settings& s) { return intoSize(t, kNoteBacklog, s.note_backlog); },
        {},
        [](const Settings& s) { return within(kNoteBacklog, s.note_backlog, base::formatSize); }},
    SettingRow{"VIADUCT_MEET", "",
               "Meeting place where agents register and find each other by name: host:port of "
               "`viaduct meet`, or http://host:port of etcd, joined by commas.",
               [](std::string_view t, Settings& s) { return intoMeet(t, s.meet); }},
    SettingRow{"VIADUCT_NAMESPACE", "",
               "Namespace of the names at the meeting place; by default /viaduct.",
               [](std::string_view t, Settings& s) { return intoText(t, s.name_space); }},
    SettingRow{"VIADUCT_MEET_USER", "", "User name for etcd.",
               [](std::string_view t, Settings& s) { return intoText(t, s.meet_user); }},
    SettingRow{"VIADUCT_MEET_PASSWORD", "", "Password for etcd.",
               [](std::string_view t, Settings& s) { return intoText(t, s.meet_password); }},
    SettingRow{"VIADUCT_MEET_CA", "", "File with the CA certificates that verify the etcd server.",
               [](std::string_view t, Settings& s) { return intoText(t, s.meet_ca); }},
    SettingRow{"VIADUCT_MEET_CERTIFICATE", "", "File with the client certificate for etcd.",
               [](std::string_view t, Settings& s) { return intoText(t, s.meet_certificate); }},
    SettingRow{"VIADUCT_MEET_KEY", "", "File with the private key of the client certificate.",
               [](std::string_view t, Settings& s) { return intoText(t, s.meet_key); }},
    SettingRow{
        "NIXL_ETCD_ENDPOINTS", "", "Alias of VIADUCT_MEET for etcd, read if VIADUCT_MEET is unset.",
        [](std::string_view t, Settings& s) { return intoEndpoints(t, s.meet); }, "VIADUCT_MEET"},
    SettingRow{"NIXL_ETCD_NAMESPACE", "",
               "Alias of VIADUCT_NAMESPACE, read if VIADUCT_NAMESPACE is unset.",
               [](std::string_view t, Settings& s) { return intoText(t, s.name_space); },
               "VIADUCT_NAMESPACE"},
    SettingRow{"VIADUCT_WEATHER", "",
               "For the fake backend: faults to inject into each op, such as "
               "seed=7,delay_us=50,lose_rail=0.01.",
               [](std::string_view t, Settings& s) { return intoText(t, s.weather); }},
};

// The name of a setting's field: "VIADUCT_COPY_THREADS" is Settings::copy_threads.
std::string fieldOf(std::string_view variable) {
  std::string field(variable.substr(std::string_view("VIADUCT_").size()));
  std::transform(field.begin(), field.end(), field.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return field;
}

// An empty variable counts as unset, so that a deployment file can undo a setting.
const char* valueOf(std::string_view variable) {
  const char* text = std::getenv(std::string(variable).c_str());
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
         std::any_of(kRows.begin(), kRows.end(),
                     [&](const SettingRow& row) { return row.variable == variable; });
}

// Other variables with this prefix belong to the build, or to a pod: Kubernetes sets VIADUCT_PORT
// for a service called viaduct.
void warnOfMistypedVariables() {
  static std::atomic_flag said;
  if (said.test_and_set()) return;
  for (const std::string& one : base::environmentOf(kOurs)) {
    const std::string variable = one.substr(0, one.find('='));
    const std::string_view meant = isKnown(variable) ? "" : nearestSetting(variable);
    if (!meant.empty())
      base::log(base::LogLevel::kWarning, "there is no setting {}: did you mean {}?", variable,
                meant);
  }
}

}  // namespace

std::span<const SettingRow> settingRows() { return kRows; }

std::string_view nearestSetting(std::string_view variable) {
  std::string_view best;
  std::size_t least = variable.size();
  for (const SettingRow& row : kRows) {
    const std::size_t apart = distanceOf(variable, row.variable);
    if (apart <= mostMistakes(variable) && apart < least) {
      best = row.variable;
      least = apart;
    }
  }
  return best;
}

Status checkSettings(const Settings& settings) {
  for (const SettingRow& row : kRows) {
    if (row.check == nullptr) continue;
    Status checked = row.check(settings);
    if (checked) continue;
    Error error = std::move(checked).error();
    error.operation = fmt::format("settings: {}", fieldOf(row.variable));
    error.remedy = fmt::format("{} ({})", error.remedy, row.variable);
    return error;
  }
  return Ok{};
}

Result<Settings> settingsFromEnvironment() {
  warnOfMistypedVariables();
  Settings out;
  for (const SettingRow& row : kRows) {
    const char* text = valueOf(row.variable);
    if (text == nullptr || (!row.instead_of.empty() && valueOf(row.instead_of) != nullptr))
      continue;
    auto parsed = row.parse(text, out);
    if (parsed) continue;
    Error error = std::move(parsed).error();
    error.detail = fmt::format("{}={} cannot be read", row.variable, text);
    error.remedy = fmt::format("give {} {}, or unset it", row.variable, error.remedy);
    return error;
  }
  return out;
}

}  // namespace viaduct
