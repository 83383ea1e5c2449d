// The settings of an agent: a struct of defaults, and a table with one row per setting. Threads:
// plain values.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

// Whether to use an optimisation; kAuto uses it where it is known to pay.
enum class Toggle : std::uint8_t { kAuto, kOn, kOff };

// The attacks that data over tcp is protected against on its way (docs/security.md). From kOff on,
// a later level protects more.
enum class Privacy : std::uint8_t {
  kAuto,       // kFrames between hosts, kOff within one host
  kOff,        // nothing
  kFrames,     // forged, moved, repeated or lost writes and ends of writes; not changed data
  kIntegrity,  // all changes
  kEncrypted,  // all changes, and reading
  kRequired,   // as kEncrypted, and no transfer with a peer that refuses
};

inline constexpr std::size_t kPrivacies = static_cast<std::size_t>(Privacy::kRequired) + 1;
const char* privacyName(Privacy privacy);  // as VIADUCT_PRIVACY writes it

// The first and the last TCP port, both included; 0 to 0: the system chooses.
struct PortRange {
  std::uint16_t first = 0, last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

struct Settings {
  std::string name = {};                              // empty: host-pid-random
  std::vector<std::string> listen = {"127.0.0.1:0"};  // "host:port"; empty: Unix socket only
  std::string secret = {};                            // shared by a group; empty: this agent's own
  bool insecure = false;                              // admits anyone who reaches the socket
  std::vector<std::string> backends = {};             // empty: all that are built in
  std::vector<std::string> rails = {};  // addresses or devices; empty: docs/choosing.md
  std::uint32_t sockets = 1;            // tcp sockets per rail and peer
  PortRange tcp_ports = {};             // where tcp listens for data
  Privacy privacy = Privacy::kAuto;     // protection of data over tcp
  bool fabric_is_private = false;       // the fabric under ofi and ucx encrypts, says the user
  Toggle striping = Toggle::kAuto;      // splits a transfer over several rails
  std::uint64_t min_chunk = 0;          // least bytes for one more rail; 0: by backend
  std::string ofi_provider = {};        // of libfabric; empty: the best available
  Toggle inject = Toggle::kAuto;        // ofi: small writes inline in their requests
  Toggle doorbell = Toggle::kAuto;      // ofi: one doorbell for many requests
  std::uint32_t copy_threads = 0;       // threads for copies on this host; 0: by cores
  Toggle wide_copies = Toggle::kAuto;   // writes past the cache; auto: if the data was not in it
  std::uint64_t populate = std::uint64_t{4} << 30U;            // most bytes populated ahead of use
  std::chrono::milliseconds detect = std::chrono::seconds(2);  // a peer is lost after 3/4 of it
  std::chrono::milliseconds deadline = std::chrono::seconds(30);     // of a post without its own
  std::chrono::milliseconds grace = std::chrono::milliseconds(500);  // from a deadline to the end
  std::chrono::microseconds spin = std::chrono::microseconds(50);    // polling before a wait sleeps
  std::uint64_t note_backlog = std::uint64_t{64} << 20U;  // bytes of notes kept for a slow reader
  std::string meet = {};  // where agents find each other by name: "host:port", "http://etcd:2379"
  std::string name_space = {};                     // prefix of names in etcd; empty: "/viaduct"
  std::string meet_user = {}, meet_password = {};  // for etcd
  std::string meet_ca = {}, meet_certificate = {}, meet_key = {};  // files, for etcd over https
  std::string metrics = {};  // where to serve statistics(): "host:port", or a port of loopback
  std::uint64_t staging_chunk = std::uint64_t{2} << 20U;  // bytes of a chunk of a staged transfer
  std::uint32_t staging_chunks = 16;                      // chunks in each end's ring
  std::uint64_t staging_memory = std::uint64_t{256} << 20U;  // most bytes of all rings
  std::string faults = {};                                   // to inject: docs/faults.md
  bool faults_allowed = false;                               // otherwise `faults` is refused
  // Values of backends' settings that have no field here, by the name of their variable.
  std::map<std::string, std::string, std::less<>> others = {};
  friend bool operator==(const Settings&, const Settings&) = default;
};

// One setting: the variable that sets it, its default as text, help, and parser.
struct SettingRow {
  std::string_view variable;
  std::string_view fallback;
  std::string_view help;
  Status (*parse)(std::string_view text, Settings& into);
  // If not empty, `variable` is read only if the variable that this names is not set.
  std::string_view instead_of = {};  // another row's variable
  // Refuses a value out of range; null: every value is in range.
  Status (*check)(const Settings& settings) = nullptr;
  // The value as text, for results. Null: a secret, which results leave out.
  std::string (*show)(const Settings& settings) = nullptr;
  bool of_host = false;  // hosts of one benchmark run may have different values
};
// The agent's settings, then those of each backend: BackendFacts::settings.
std::span<const SettingRow> settingRows();
// The field that a variable sets: "VIADUCT_COPY_THREADS" is Settings::copy_threads.
std::string settingField(std::string_view variable);
// The setting whose name is nearest to that of an unknown variable; empty: none is near.
std::string_view nearestSetting(std::string_view variable);

// Refuses the first setting that is outside its row's range. Agent::open calls this.
Status checkSettings(const Settings& settings);

// The names that Settings::backends accepts.
std::vector<std::string_view> builtInBackends();
// The library that a backend loads, as "UCX 1.13.1", or why it does not load. Empty: it loads none.
std::string backendLibrary(std::string_view name);

// The defaults, changed by the VIADUCT_* variables that are set and not empty. Agent::open()
// without arguments and the command line use it; Agent::open(settings) reads no variable. Warns,
// once per process, of each variable that nearly has the name of a setting.
Result<Settings> settingsFromEnvironment();

}  // namespace viaduct
