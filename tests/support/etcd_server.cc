#include "support/etcd_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "support/free_port.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

struct Output {
  std::string text;
  int status = -1;
};
Output run(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen((command + " 2>&1").c_str(), "re"),
                                                   [](FILE*) { return 0; });
  Output out;
  if (!pipe) return out;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
    out.text.append(buffer.data(), got);
  out.status = ::pclose(pipe.get());
  return out;
}

// Runs in the child after fork, so it makes only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, const char* log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int fd = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  ::execvp(argv[0], argv);
  ::_exit(127);
}

// etcd waits for its disk, so data folders are in memory if this much is free. Each takes 64 MiB,
// and many servers run at once.
constexpr std::uintmax_t kRoom = std::uintmax_t{2} << 30U;

}  // namespace

std::string shell(const std::string& command) {
  const Output out = run(command);
  EXPECT_EQ(out.status, 0) << command << "\n" << out.text;
  return out.text;
}

std::string EtcdServer::whyAbsent() {
  static const std::string kWhy = []() -> std::string {
    const Output out = run("etcd --version");
    if (out.status != 0) return "no etcd (package etcd-server)";
    // etcd up to 3.3 has no gateway at /v3/.
    for (const char* old : {"etcd Version: 2.", "etcd Version: 3.0", "etcd Version: 3.1",
                            "etcd Version: 3.2", "etcd Version: 3.3"})
      if (out.text.find(old) != std::string::npos) return "no etcd of version 3.4 or newer";
    return {};
  }();
  return kWhy;
}

EtcdServer::EtcdServer(Settings settings)
    : settings_(std::move(settings)),
      folder_(folderInMemory(kRoom)),
      port_(freePort()),
      peer_port_(settings_.peer_port != 0 ? settings_.peer_port : freePort()) {
  launch();
  if (settings_.cluster.empty()) ready();
}

EtcdServer::~EtcdServer() { kill(); }

std::string EtcdServer::url(const std::string& host) const {
  return fmt::format("{}://{}:{}", settings_.ca_file.empty() ? "http" : "https", host, port_);
}

std::string EtcdServer::log() const {
  std::ifstream file(folder_.path() + "/log");
  return {std::istreambuf_iterator<char>(file), {}};
}

void EtcdServer::wipe() { std::filesystem::remove_all(folder_.path() + "/data"); }

void EtcdServer::start() {
  launch();
  ready();
}

void EtcdServer::launch() {
  const std::string peer = fmt::format("http://127.0.0.1:{}", peer_port_);
  const std::string& cluster = settings_.cluster;
  std::vector<std::string> words{
      "etcd",
      "--name=" + settings_.name,
      "--data-dir=" + folder_.path() + "/data",
      "--listen-client-urls=" + url(),
      "--advertise-client-urls=" + url(),
      "--listen-peer-urls=" + peer,
      "--initial-advertise-peer-urls=" + peer,
      "--initial-cluster=" + (cluster.empty() ? "default=" + peer : cluster)};
  if (!settings_.ca_file.empty())
    for (const std::string& word :
         {std::string("--client-cert-auth"), "--trusted-ca-file=" + settings_.ca_file,
          "--cert-file=" + settings_.certificate_file, "--key-file=" + settings_.key_file})
      words.push_back(word);
  words.insert(words.end(), settings_.arguments.begin(), settings_.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log_file = folder_.path() + "/log";
  ::unlink(log_file.c_str());
  pid_ = ::fork();
  if (pid_ == 0) become(argv.data(), log_file.c_str());
}

void EtcdServer::ready() {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (log().find("ready to serve client requests") == std::string::npos) {
    int status = 0;
    if (std::chrono::steady_clock::now() > end || ::waitpid(pid_, &status, WNOHANG) == pid_) {
      ADD_FAILURE() << "etcd did not start:\n" << log();
      return;
    }
    std::this_thread::sleep_for(2ms);
  }
}

void EtcdServer::stop() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

void EtcdServer::resume() { ::kill(pid_, SIGCONT); }

void EtcdServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string EtcdServer::ctl(const std::string& arguments) const {
  std::string tls;
  if (!settings_.ca_file.empty())
    tls = fmt::format("--cacert={} --cert={} --key={}", settings_.ca_file,
                      settings_.certificate_file, settings_.key_file);
  return shell(fmt::format("ETCDCTL_API=3 etcdctl --endpoints={} {} {}", url(), tls, arguments));
}

}  // namespace viaduct::testing
