// Finds the API server and the credentials for it: a kubeconfig that KUBECONFIG names, the pod's
// service account, or ~/.kube/config. Threads: pure functions over the environment and files.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>

#include "base/environment.h"
#include "meet/http/exchange.h"

namespace viaduct::meet::kubernetes {

struct Access {
  std::string server = {};          // "https://10.0.0.1:443"
  std::string kube_namespace = {};  // the default one
  Tls tls = {};
  // The bearer's token, or the file that has it. Kubernetes replaces the file's token before it
  // expires. Both empty: a client certificate, or no credentials.
  std::string token = {}, token_file = {};
  std::string origin = {};  // for errors: "the pod's service account"
};

// The surroundings that a test replaces.
struct Surroundings {
  const char* (*variable)(const char* name) = &base::variable;
  std::string account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};

Result<Access> findAccess(const Surroundings& from = {});

// Reads a kubeconfig in YAML or JSON. Relative file names in it begin at the folder of `file`.
Result<Access> accessFromKubeconfig(std::string_view text, const std::string& file);

// "Bearer ...", or an empty text without a token. Reads the file each time.
Result<std::string> authorizationOf(const Access& access);

}  // namespace viaduct::meet::kubernetes
