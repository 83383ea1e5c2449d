#include "meet/kubernetes/access.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/fd.h"
#include "base/file_error.h"
#include "base/json.h"
#include "base/net/address.h"
#include "base/read_fd.h"
#include "base/text.h"
#include "meet/kubernetes/yaml.h"

namespace viaduct::meet::kubernetes {
namespace {

constexpr std::size_t kMostFile = std::size_t{1} << 20U;
constexpr const char* kFlatten =
    "kubectl config view --raw --minify --flatten -o json > FILE, and set KUBECONFIG=FILE";

Result<std::string> textOf(const char* operation, const std::string& file) {
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  const int failed = fd ? base::readAll(fd.get(), text, kMostFile) : errno;
  if (failed != 0) return base::fileError(operation, failed, file);
  if (text.size() <= kMostFile) return text;
  return Error{.operation = operation, .detail = "the file is longer than 1 MiB", .file = file};
}

bool exists(const std::string& file) {
  return static_cast<bool>(base::Fd(::open(file.c_str(), O_PATH | O_CLOEXEC)));
}

Error unusable(const std::string& file, std::string detail, const char* remedy = kFlatten) {
  return {.operation = "read a kubeconfig",
          .detail = std::move(detail),
          .file = file,
          .remedy = remedy};
}

// The types below have the fields of a kubeconfig, in its words.
struct ClusterEntry {
  std::string server = {}, ca_file = {}, ca_data = {}, server_name = {}, proxy = {};
  bool unverified = false;
};
void describe(auto& json, base::Is<ClusterEntry> auto& c) {
  json.need("server", c.server);
  json.may("certificate-authority", c.ca_file);
  json.may("certificate-authority-data", c.ca_data);
  json.may("insecure-skip-tls-verify", c.unverified);
  json.may("tls-server-name", c.server_name);
  json.may("proxy-url", c.proxy);
}
struct UserEntry {
  std::string token = {}, token_file = {};
  std::string certificate_file = {}, certificate_data = {}, key_file = {}, key_data = {};
};
void describe(auto& json, base::Is<UserEntry> auto& u) {
  json.may("token", u.token);
  json.may("tokenFile", u.token_file);
  json.may("client-certificate", u.certificate_file);
  json.may("client-certificate-data", u.certificate_data);
  json.may("client-key", u.key_file);
  json.may("client-key-data", u.key_data);
}
struct ContextEntry {
  std::string cluster = {}, user = {}, kube_namespace = {};
};
void describe(auto& json, base::Is<ContextEntry> auto& c) {
  json.need("cluster", c.cluster);
  json.may("user", c.user);
  json.may("namespace", c.kube_namespace);
}

// Looks entries up in one kubeconfig.
class Kubeconfig {
 public:
  Kubeconfig(base::Json json, const std::string& file) : json_(std::move(json)), file_(file) {}
  Result<Access> access() const;

 private:
  // The entry of this name in a list such as "clusters", whose part `kind` is "cluster".
  Result<const base::Json*> entry(const char* list, const char* kind,
                                  const std::string& name) const;
  template <class T>
  Result<T> read(const char* list, const char* kind, const std::string& name) const;
  Status checkUser(const std::string& name) const;
  Status into(Tls& tls, const ClusterEntry& cluster, const UserEntry& user) const;
  std::string path(const std::string& name) const;

  const base::Json json_;
  const std::string& file_;
};

Result<const base::Json*> Kubeconfig::entry(const char* list, const char* kind,
                                            const std::string& name) const {
  const auto all = json_.find(list);
  if (all != json_.end() && all->is_array())
    for (const base::Json& one : *all) {
      if (!one.is_object() || !one.contains(kind) || !one[kind].is_object()) continue;
      const auto named = one.find("name");
      if (named != one.end() && *named == name) return &one[kind];
    }
  return unusable(file_, fmt::format("{} has no {} \"{}\"", list, kind, name),
                  "check it with kubectl config view");
}

template <class T>
Result<T> Kubeconfig::read(const char* list, const char* kind, const std::string& name) const {
  VIADUCT_TRY(const base::Json* found, entry(list, kind, name));
  T out{};
  base::JsonReader reader(*found);
  describe(reader, out);
  const Status status = reader.status("", "");
  if (!status)
    return unusable(file_, fmt::format("{} \"{}\": {}", kind, name, status.error().detail));
  return out;
}

// Refuses a user with another kind of credentials, which the server would refuse without a reason.
Status Kubeconfig::checkUser(const std::string& name) const {
  VIADUCT_TRY(const base::Json* user, entry("users", "user", name));
  for (const char* other : {"exec", "auth-provider", "username", "password", "as"})
    if (user->contains(other))
      return unusable(file_,
                      fmt::format("user \"{}\" has \"{}\", which is not supported", name, other),
                      "use a token, a tokenFile or a client certificate: kubectl create token "
                      "SERVICEACCOUNT makes a token");
  return Ok{};
}

std::string Kubeconfig::path(const std::string& name) const {
  if (name.empty() || name.starts_with('/')) return name;
  const std::size_t slash = file_.rfind('/');
  return slash == std::string::npos ? name : file_.substr(0, slash + 1) + name;
}

Status Kubeconfig::into(Tls& tls, const ClusterEntry& cluster, const UserEntry& user) const {
  struct Part {
    const std::string &data, &file;
    std::string &pem, &into_file;
    const char* name;
  };
  const Part parts[] = {
      {cluster.ca_data, cluster.ca_file, tls.ca_pem, tls.ca_file, "certificate-authority-data"},
      {user.certificate_data, user.certificate_file, tls.certificate_pem, tls.certificate_file,
       "client-certificate-data"},
      {user.key_data, user.key_file, tls.key_pem, tls.key_file, "client-key-data"}};
  for (const Part& part : parts) {
    if (part.data.empty()) {
      part.into_file = path(part.file);
      continue;
    }
    auto pem = base::fromBase64(part.data);
    if (!pem) return unusable(file_, fmt::format("{} is not base64", part.name));
    part.pem = *std::move(pem);
  }
  return Ok{};
}

Result<Access> Kubeconfig::access() const {
  const auto current = json_.find("current-context");
  if (current == json_.end() || !current->is_string())
    return unusable(file_, "it has no current-context", "kubectl config use-context NAME");
  const auto name = current->get<std::string>();
  VIADUCT_TRY(const auto context, read<ContextEntry>("contexts", "context", name));
  VIADUCT_TRY(const auto cluster, read<ClusterEntry>("clusters", "cluster", context.cluster));
  UserEntry user;
  if (!context.user.empty()) {
    VIADUCT_CHECK(checkUser(context.user));
    VIADUCT_TRY(user, read<UserEntry>("users", "user", context.user));
  }
  if (cluster.unverified || !cluster.server_name.empty() || !cluster.proxy.empty())
    return unusable(
        file_, "insecure-skip-tls-verify, tls-server-name and proxy-url are not supported",
        "give certificate-authority-data, and the server by the name of its certificate");
  Access out{.server = cluster.server,
             .kube_namespace = context.kube_namespace.empty() ? "default" : context.kube_namespace,
             .token = user.token,
             .token_file = path(user.token_file),
             .origin = fmt::format("context \"{}\" of {}", name, file_)};
  while (out.server.ends_with('/')) out.server.pop_back();
  if (!out.server.starts_with("https://") && !out.server.starts_with("http://"))
    return unusable(file_, fmt::format("the server \"{}\" has no https://", cluster.server));
  VIADUCT_CHECK(into(out.tls, cluster, user));
  return out;
}

Result<Access> fromFile(const std::string& file) {
  VIADUCT_TRY(const std::string text, textOf("read a kubeconfig", file));
  return accessFromKubeconfig(text, file);
}

Result<Access> fromServiceAccount(const Surroundings& from, const char* host) {
  const char* const port = from.variable("KUBERNETES_SERVICE_PORT");
  const auto number = base::numberIn<std::uint16_t>(port == nullptr ? "443" : port);
  if (!number)
    return Error{.operation = "find the API server of Kubernetes",
                 .detail = fmt::format("KUBERNETES_SERVICE_PORT is \"{}\"", port)};
  const std::string& folder = from.account_folder;
  Access out{.server = "https://" + base::hostPortText(host, *number),
             .tls = {.ca_file = folder + "/ca.crt"},
             .token_file = folder + "/token",
             .origin = "the pod's service account"};
  auto found = textOf("read the pod's namespace", folder + "/namespace");
  if (!found || !exists(out.token_file) || !exists(out.tls.ca_file))
    return Error{.code = Code::kNotFound,
                 .operation = "find the credentials of this pod",
                 .detail = "token, ca.crt and namespace are not all there",
                 .file = folder,
                 .cause = "automountServiceAccountToken is false for the pod or its ServiceAccount",
                 .remedy = "set automountServiceAccountToken: true in the pod's spec"};
  out.kube_namespace = base::trimmed(*found);
  return out;
}

}  // namespace

Result<Access> findAccess(const Surroundings& from) {
  const char* const config = from.variable("KUBECONFIG");
  if (config != nullptr && *config != '\0') {
    const auto files = base::partsOf(config, ':');
    if (files.size() == 1) return fromFile(files.front());
    return Error{.operation = "read KUBECONFIG",
                 .detail = "it names several files, and merging these is not supported",
                 .remedy = kFlatten};
  }
  const char* const host = from.variable("KUBERNETES_SERVICE_HOST");
  if (host != nullptr && *host != '\0') return fromServiceAccount(from, host);
  const char* const home = from.variable("HOME");
  const std::string file = home == nullptr ? "" : fmt::format("{}/.kube/config", home);
  if (!file.empty() && exists(file)) return fromFile(file);
  return Error{.code = Code::kNotFound,
               .operation = "find the API server of Kubernetes",
               .detail =
                   "KUBECONFIG and KUBERNETES_SERVICE_HOST are unset, and there is no "
                   "~/.kube/config",
               .cause = "this process runs in no pod, and nothing names a cluster",
               .remedy = "run it in a pod, or set KUBECONFIG to the file of a cluster"};
}

Result<Access> accessFromKubeconfig(std::string_view text, const std::string& file) {
  auto json = parseYaml(text);
  if (!json) return unusable(file, json.error().detail);
  if (!json->is_object()) return unusable(file, "it is no mapping");
  return Kubeconfig(*std::move(json), file).access();
}

Result<std::string> authorizationOf(const Access& access) {
  if (access.token.empty() && access.token_file.empty()) return std::string();
  std::string token = access.token;
  if (!access.token_file.empty()) {
    VIADUCT_TRY(token, textOf("read the token for Kubernetes", access.token_file));
  }
  // The token becomes a header line, so it must be one line. No error shows it.
  const std::string_view bare = base::trimmed(token);
  if (!bare.empty() && std::ranges::all_of(bare, [](char c) { return c > ' ' && c < 0x7f; }))
    return fmt::format("Bearer {}", bare);
  return Error{.operation = "read the token for Kubernetes",
               .detail = "it is empty, or no single line of printable characters",
               .file = access.token_file,
               .remedy = "kubectl create token SERVICEACCOUNT makes a token"};
}

}  // namespace viaduct::meet::kubernetes
