#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/backend.h>
#include <viaduct/settings.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "support/temporary_folder.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() { clear(); }
  ~SettingsTest() override { clear(); }
  static void clear() {
    for (const SettingRow& row : settingRows()) ::unsetenv(row.variable.data());
  }
  static void set(const char* variable, const char* value) { ::setenv(variable, value, 1); }
};

TEST_F(SettingsTest, NothingSetGivesTheDefaults) {
  const auto settings = settingsFromEnvironment();
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(*settings, Settings{});
}

// A copy of this program, which belongs to another user and is setuid, runs the test too, and tells
// what the settings are there.
TEST(SetuidSettings, AreTheDefaults) {
  if (::getenv("VIADUCT_NAME") != nullptr) {
    const auto settings = settingsFromEnvironment();
    const bool ignored = settings && settings->name.empty();
    std::puts(::getauxval(AT_SECURE) == 0 ? "not secure" : ignored ? "ignored" : "believed");
    return;
  }
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: no right to make a program of another user";
  const testing::TemporaryFolder folder;
  const std::string copy = folder.path() + "/setuid";
  std::filesystem::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(::chown(copy.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(copy.c_str(), 04755), 0);
  const std::string command =
      "VIADUCT_NAME=forged " + copy + " --gtest_filter=SetuidSettings.AreTheDefaults";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said(1 << 16, '\0');
  said.resize(std::fread(said.data(), 1, said.size(), pipe));
  ::pclose(pipe);  // a sanitizer may find fault with a setuid program
  if (said.find("not secure") != std::string::npos)
    GTEST_SKIP() << "skipped: no setuid programs in " << folder.path();
  EXPECT_NE(said.find("ignored"), std::string::npos) << said;
}

TEST_F(SettingsTest, EveryFallbackIsTheDefault) {
  for (const SettingRow& row : settingRows()) {
    Settings settings;
    const auto parsed = row.parse(row.fallback, settings);
    ASSERT_TRUE(parsed) << row.variable << parsed.error().text();
    EXPECT_EQ(settings, Settings{}) << row.variable;
    EXPECT_FALSE(row.help.empty());
  }
}

TEST_F(SettingsTest, EveryFieldHasAVariable) {
  const std::pair<const char*, const char*> values[] = {
      {"VIADUCT_NAME", "decode-3"},
      {"VIADUCT_LISTEN", "0.0.0.0:4000, [::1]:0"},
      {"VIADUCT_SECRET", "open sesame"},
      {"VIADUCT_INSECURE", "yes"},
      {"VIADUCT_BACKENDS", "local,tcp"},
      {"VIADUCT_RAILS", "eth0,10.0.0.7"},
      {"VIADUCT_SOCKETS", "4"},
      {"VIADUCT_COPY_THREADS", "2"},
      {"VIADUCT_STRIPING", "off"},
      {"VIADUCT_TCP_PORTS", "7100-7199"},
      {"VIADUCT_MIN_CHUNK", "64KiB"},
      {"VIADUCT_OFI_PROVIDER", "shm"},
      {"VIADUCT_INJECT", "on"},
      {"VIADUCT_DOORBELL", "off"},
      {"VIADUCT_WIDE_COPIES", "on"},
      {"VIADUCT_POPULATE", "0"},
      {"VIADUCT_DETECT", "1.5s"},
      {"VIADUCT_DEADLINE", "1m"},
      {"VIADUCT_GRACE", "250ms"},
      {"VIADUCT_SPIN", "0"},
      {"VIADUCT_NOTE_BACKLOG", "1MiB"},
      {"VIADUCT_MEET", "meet:7000"},
      {"VIADUCT_NAMESPACE", "/mine"},
      {"VIADUCT_MEET_USER", "me"},
      {"VIADUCT_MEET_PASSWORD", "word"},
      {"VIADUCT_MEET_CA", "ca.pem"},
      {"VIADUCT_MEET_CERTIFICATE", "me.pem"},
      {"VIADUCT_MEET_KEY", "me.key"},
      {"NIXL_ETCD_ENDPOINTS", "not looked at"},
      {"NIXL_TCPSTORE_ENDPOINT", "nor this"},
      {"NIXL_ETCD_NAMESPACE", "neither"},
      {"VIADUCT_METRICS", "[::1]:27180"},
      {"VIADUCT_STAGING_CHUNK", "8MiB"},
      {"VIADUCT_STAGING_CHUNKS", "4"},
      {"VIADUCT_STAGING_MEMORY", "1GiB"},
      {"VIADUCT_PRIVACY", "encrypted"},
      {"VIADUCT_FABRIC_IS_PRIVATE", "yes"},
      {"VIADUCT_FAULTS", "delay=1s"},
      {"VIADUCT_FAULTS_ALLOWED", "yes"},
  };
  // Settings::others has the settings of the backends of storage, of GPUs and for tests.
  std::size_t without_field = 0;
  for (const BackendFacts& backend : backendFacts())
    if (backend.storage || backend.gpus || backend.for_tests)
      without_field += backend.settings.size();
  EXPECT_EQ(std::size(values) + without_field, settingRows().size());
  for (const auto& [variable, value] : values) set(variable, value);
  const auto settings = settingsFromEnvironment();
  ASSERT_TRUE(settings) << settings.error().text();
  const Settings expected{.name = "decode-3",
                          .listen = {"0.0.0.0:4000", "[::1]:0"},
                          .secret = "open sesame",
                          .insecure = true,
                          .backends = {"local", "tcp"},
                          .rails = {"eth0", "10.0.0.7"},
                          .sockets = 4,
                          .tcp_ports = {7100, 7199},
                          .privacy = Privacy::kEncrypted,
                          .fabric_is_private = true,
                          .striping = Toggle::kOff,
                          .min_chunk = 64U << 10U,
                          .ofi_provider = "shm",
                          .inject = Toggle::kOn,
                          .doorbell = Toggle::kOff,
                          .copy_threads = 2,
                          .wide_copies = Toggle::kOn,
                          .populate = 0,
                          .detect = 1500ms,
                          .deadline = 60s,
                          .grace = 250ms,
                          .spin = 0us,
                          .note_backlog = 1U << 20U,
                          .meet = "meet:7000",
                          .name_space = "/mine",
                          .meet_user = "me",
                          .meet_password = "word",
                          .meet_ca = "ca.pem",
                          .meet_certificate = "me.pem",
                          .meet_key = "me.key",
                          .metrics = "[::1]:27180",
                          .staging_chunk = 8U << 20U,
                          .staging_chunks = 4,
                          .staging_memory = 1U << 30U,
                          .faults = "delay=1s",
                          .faults_allowed = true};
  EXPECT_EQ(*settings, expected);
}

TEST_F(SettingsTest, NixlsEtcdVariablesAreReadIfOursAreUnset) {
  set("NIXL_ETCD_ENDPOINTS", "one:2379, https://two:2379");
  set("NIXL_ETCD_NAMESPACE", "/nixl");
  set("VIADUCT_NAMESPACE", "/ours");
  const auto settings = settingsFromEnvironment();
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(settings->meet, "http://one:2379,https://two:2379");
  EXPECT_EQ(settings->name_space, "/ours");
}

TEST_F(SettingsTest, NixlsTcpStoreIsReadIfOursIsUnset) {
  set("NIXL_TCPSTORE_ENDPOINT", "master:29500");
  const auto settings = settingsFromEnvironment();
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(settings->meet, "tcpstore:master:29500");
  set("NIXL_ETCD_ENDPOINTS", "one:2379");
  const auto both = settingsFromEnvironment();
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().text().find("without NIXL_ETCD_ENDPOINTS"), std::string::npos)
      << both.error().text();
}

TEST_F(SettingsTest, NoneListensOnNoAddressAndEmptyIsUnset) {
  set("VIADUCT_LISTEN", "none");
  set("VIADUCT_SOCKETS", "");
  const auto settings = settingsFromEnvironment();
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_TRUE(settings->listen.empty());
  EXPECT_EQ(settings->sockets, 1U);
}

TEST_F(SettingsTest, SuggestsTheSettingForAMistypedVariable) {
  EXPECT_EQ(nearestSetting("VIADUCT_BACKEND"), "VIADUCT_BACKENDS");
  EXPECT_EQ(nearestSetting("VIADUCT_SOKETS"), "VIADUCT_SOCKETS");
  EXPECT_EQ(nearestSetting("VIADUCT_PROVIDER"), "VIADUCT_OFI_PROVIDER");
  EXPECT_EQ(nearestSetting("VIADUCT_COPYTHREADS"), "VIADUCT_COPY_THREADS");
  // Not settings: these belong to the build, to tests, and to pods beside services called viaduct
  // and viaduct-meet.
  for (const char* other :
       {"VIADUCT_SETUP", "VIADUCT_WERROR", "VIADUCT_UBUNTU_MIRROR", "VIADUCT_SEED", "VIADUCT_TEST",
        "VIADUCT_TESTS", "VIADUCT_BENCH", "VIADUCT_KILL_ROUNDS", "VIADUCT_ATTACK_ROUNDS",
        "VIADUCT_MEET_ROUNDS", "VIADUCT_NEEDS_ETCD", "VIADUCT_PORT", "VIADUCT_SERVICE_HOST",
        "VIADUCT_MEET_PORT", "VIADUCT_MEET_SERVICE_HOST", "VIADUCT_FUZZ_RUNS", "VIADUCT_VERSION"})
    EXPECT_EQ(nearestSetting(other), "") << other;
}

TEST_F(SettingsTest, AnErrorNamesVariableValueAndForm) {
  const struct {
    const char *variable, *value, *form;
  } cases[] = {
      {"VIADUCT_LISTEN", "localhost", "host:port"},
      {"VIADUCT_LISTEN", "127.0.0.1:70000", "host:port"},
      {"VIADUCT_LISTEN", "::1:0", "[v6]:port"},
      {"VIADUCT_LISTEN", "127.0.0.1:0,", "host:port"},
      {"VIADUCT_METRICS", "localhost", "host:port"},
      {"VIADUCT_METRICS", "65536", "27180"},
      {"VIADUCT_INSECURE", "maybe", "true"},
      {"VIADUCT_MEET", "one two", "host:port"},
      {"NIXL_ETCD_ENDPOINTS", "one,,two", "joined by commas"},
      {"NIXL_TCPSTORE_ENDPOINT", "master", "host:port"},
      {"VIADUCT_BACKENDS", "local,,tcp", "joined by commas"},
      {"VIADUCT_SOCKETS", "0", "from 1 to 64"},
      {"VIADUCT_SOCKETS", "many", "from 1 to 64"},
      {"VIADUCT_STRIPING", "yes", "auto, on or off"},
      {"VIADUCT_INJECT", "perhaps", "auto, on or off"},
      {"VIADUCT_DOORBELL", "1", "auto, on or off"},
      {"VIADUCT_TCP_PORTS", "0", "a range like 7100-7199"},
      {"VIADUCT_TCP_PORTS", "7199-7100", "a range like 7100-7199"},
      {"VIADUCT_TCP_PORTS", "7100-", "a range like 7100-7199"},
      {"VIADUCT_TCP_PORTS", "7100-65536", "within 1 to 65535"},
      {"VIADUCT_MIN_CHUNK", "4000", "from 4KiB to 1TiB, or auto"},
      {"VIADUCT_COPY_THREADS", "257", "from 0 to 256"},
      {"VIADUCT_DETECT", "2", "like 2s, 500ms"},
      {"VIADUCT_DETECT", "1ms", "from 20ms to 86400s"},
      {"VIADUCT_GRACE", "20us", "whole ms"},
      {"VIADUCT_SPIN", "-1us", "20us"},
      {"VIADUCT_DETECT", "25h", "from 20ms to 86400s"},
      {"VIADUCT_DEADLINE", "10000h", "from 1ms"},
      {"VIADUCT_SPIN", "1m", "from 0"},
      {"VIADUCT_NOTE_BACKLOG", "lots", "64MiB"},
      {"VIADUCT_POPULATE", "off", "64MiB"},
      {"VIADUCT_NOTE_BACKLOG", "0", "from 1 to 1TiB"},
  };
  for (const auto& c : cases) {
    clear();
    set(c.variable, c.value);
    const auto settings = settingsFromEnvironment();
    ASSERT_FALSE(settings) << c.variable << "=" << c.value;
    const std::string text = settings.error().text();
    EXPECT_NE(text.find(std::string(c.variable) + "=" + c.value), std::string::npos) << text;
    EXPECT_NE(text.find(c.form), std::string::npos) << text;
  }
}

// Programs may set values out of range, as results of faulty computations.
TEST_F(SettingsTest, ValuesSetInCodeHaveTheSameRange) {
  using Change = void (*)(Settings&);
  const struct {
    Change change;
    const char* field;
  } cases[] = {
      {[](Settings& s) { s.name = std::string(256, 'n'); }, "name"},
      {[](Settings& s) { s.name = std::string("a\0b", 3); }, "name"},
      {[](Settings& s) { s.name = "a\nb"; }, "name"},
      {[](Settings& s) { s.sockets = 0; }, "sockets"},
      {[](Settings& s) { s.sockets = 65; }, "sockets"},
      {[](Settings& s) { s.min_chunk = 1; }, "min_chunk"},
      {[](Settings& s) { s.min_chunk = ~std::uint64_t{0}; }, "min_chunk"},
      {[](Settings& s) { s.copy_threads = 100'000; }, "copy_threads"},
      {[](Settings& s) { s.populate = ~std::uint64_t{0}; }, "populate"},
      {[](Settings& s) { s.detect = 19ms; }, "detect"},
      {[](Settings& s) { s.detect = std::chrono::milliseconds::max(); }, "detect"},
      {[](Settings& s) { s.deadline = 0ms; }, "deadline"},
      {[](Settings& s) { s.deadline = std::chrono::milliseconds::max(); }, "deadline"},
      {[](Settings& s) { s.grace = -1ms; }, "grace"},
      {[](Settings& s) { s.grace = std::chrono::milliseconds::max(); }, "grace"},
      {[](Settings& s) { s.spin = -1us; }, "spin"},
      {[](Settings& s) { s.spin = std::chrono::microseconds::max(); }, "spin"},
      {[](Settings& s) { s.note_backlog = 0; }, "note_backlog"},
      {[](Settings& s) { s.note_backlog = ~std::uint64_t{0}; }, "note_backlog"},
  };
  EXPECT_TRUE(checkSettings({}));
  for (const auto& c : cases) {
    Settings settings;
    c.change(settings);
    const auto checked = checkSettings(settings);
    ASSERT_FALSE(checked) << c.field;
    EXPECT_EQ(checked.error().code, Code::kInvalid);
    EXPECT_EQ(checked.error().operation, std::string("settings: ") + c.field);
    EXPECT_FALSE(checked.error().remedy.empty()) << checked.error().text();
  }
}

}  // namespace
}  // namespace viaduct
