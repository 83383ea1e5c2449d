// The fake API server of fake_kube.py, and a kubeconfig for it. Threads: one, besides places() that
// any may call.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "meet/kubernetes/kubernetes.h"
#include "process/process.h"
#include "support/paths.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {

class FakeKube {
 public:
  explicit FakeKube(const std::vector<std::string>& arguments = {}, const std::string& user = "",
                    const std::string& cluster = "", const char* scheme = "http") {
    std::vector<std::string> command{kServersPython, "-B", kFakeKube};
    command.insert(command.end(), arguments.begin(), arguments.end());
    server_ = std::make_unique<Process>(command);
    url_ = std::string(scheme) + "://127.0.0.1:" + server_->answer().value_or("none");
    configure(user, cluster);
  }
  // Tests call done() at their end: a correct client sends no wrong request.
  void done() { EXPECT_EQ(tell("complaints"), "none"); }

  // Makes later places use this user and these parts of the cluster's entry, both in JSON.
  void configure(const std::string& user, const std::string& cluster = "") {
    configureAt(url_, user, cluster);
  }
  // Like configure(), for a server at another address.
  void configureAt(const std::string& url, const std::string& user = "",
                   const std::string& cluster = "") {
    std::ofstream(config()) << "current-context: c\nclusters:\n- name: k\n  cluster: {\"server\":\""
                            << url << "\"" << cluster
                            << "}\ncontexts:\n- name: c\n  context:\n    cluster: k\n    user: u\n"
                               "users:\n- name: u\n  user: {"
                            << user << "}\n";
    ::setenv("KUBECONFIG", config().c_str(), 1);
  }
  std::string config() const { return file("config"); }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  // Sends a command to the server, and returns its answer.
  std::string tell(const std::string& command) {
    return server_->ask(command).value_or("no answer");
  }
  int count(const std::string& verb) { return std::stoi(tell("count " + verb)); }
  Process& process() { return *server_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  std::string url_;
};

}  // namespace viaduct::testing
