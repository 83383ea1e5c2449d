#include "meet/kubernetes/access.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/base64.h"
#include "support/temporary_folder.h"

namespace viaduct::meet::kubernetes {
namespace {

// A pod's environment and files.
class KubernetesAccess : public ::testing::Test {
 protected:
  void SetUp() override { variables_.clear(); }

  Result<Access> find() const {
    return findAccess({.variable = [](const char* name) -> const char* {
                         const auto found = variables_.find(name);
                         return found == variables_.end() ? nullptr : found->second.c_str();
                       },
                       .account_folder = folder_.path()});
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = folder_.path() + "/" + name;
    std::ofstream(file) << text;
    return file;
  }
  static std::string config(const std::string& cluster, const std::string& user) {
    return "current-context: c\nclusters:\n- name: k\n  cluster: {" + cluster +
           "}\ncontexts:\n- name: c\n  context: {\"cluster\":\"k\",\"user\":\"u\"}\nusers:\n"
           "- name: u\n  user: {" +
           user + "}\n";
  }
  static constexpr const char* kServer = R"("server":"https://kube:6443")";

  static inline std::map<std::string, std::string> variables_;
  testing::TemporaryFolder folder_;
};

TEST_F(KubernetesAccess, APodUsesItsServiceAccount) {
  variables_ = {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "6443"}};
  const auto none = find();
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("automountServiceAccountToken"), std::string::npos);
  write("token", "secret\n");
  write("ca.crt", "pem");
  write("namespace", "serving");
  const auto access = find();
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://[fd00::1]:6443");
  EXPECT_EQ(access->kube_namespace, "serving");
  EXPECT_EQ(access->tls.ca_file, folder_.path() + "/ca.crt");
  EXPECT_EQ(*authorizationOf(*access), "Bearer secret");
  write("token", "rotated");
  EXPECT_EQ(*authorizationOf(*access), "Bearer rotated");
}

TEST_F(KubernetesAccess, AKubeconfigComesFirst) {
  variables_ = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                {"KUBECONFIG", write("config", config(kServer, R"("token":"t")"))}};
  const auto access = find();
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://kube:6443");
  EXPECT_EQ(access->kube_namespace, "default");
  EXPECT_EQ(*authorizationOf(*access), "Bearer t");
}

TEST_F(KubernetesAccess, WithoutAnyTheErrorNamesAll) {
  variables_ = {{"HOME", folder_.path()}};
  const auto access = find();
  ASSERT_FALSE(access);
  EXPECT_EQ(access.error().code, Code::kNotFound);
  for (const char* name : {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "~/.kube/config"})
    EXPECT_NE(access.error().text().find(name), std::string::npos) << access.error().text();
}

TEST_F(KubernetesAccess, CertificatesAreFilesOrData) {
  const std::string data = base::toBase64("PEM");
  const auto access = accessFromKubeconfig(
      config(std::string(kServer) + R"(,"certificate-authority":"ca.pem")",
             R"("client-certificate-data":")" + data + R"(","client-key":"/keys/me.key")"),
      "/etc/kube/config");
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->tls.ca_file, "/etc/kube/ca.pem");
  EXPECT_EQ(access->tls.certificate_pem, "PEM");
  EXPECT_EQ(access->tls.key_file, "/keys/me.key");
  EXPECT_EQ(*authorizationOf(*access), "");
}

TEST_F(KubernetesAccess, UnsupportedAndMalformedOnesAreRefusedWithWhatToDo) {
  const struct {
    std::string text;
    const char* named;
  } kCases[] = {
      {config(kServer, R"("exec":{"command":"aws"})"), "exec"},
      {config(kServer, R"("username":"me")"), "username"},
      {config(R"("server":"kube:6443")", ""), "https://"},
      {config("", ""), "server"},
      {config(std::string(kServer) + R"(,"insecure-skip-tls-verify":true)", ""), "not supported"},
      {config(std::string(kServer) + R"(,"certificate-authority-data":"?")", ""), "base64"},
      {"current-context: d\ncontexts: []\n", "no context \"d\""},
      {"contexts: []\n", "current-context"},
      {"a: |\n b\n", "line 1"},
  };
  for (const auto& one : kCases) {
    const auto access = accessFromKubeconfig(one.text, "config");
    ASSERT_FALSE(access) << one.text;
    EXPECT_NE(access.error().text().find(one.named), std::string::npos) << access.error().text();
    EXPECT_FALSE(access.error().remedy.empty()) << access.error().text();
  }
  variables_ = {{"KUBECONFIG", "a:b"}};
  EXPECT_NE(find().error().text().find("--flatten"), std::string::npos);
}

TEST_F(KubernetesAccess, ATokenIsOneLineAndNeverShown) {
  const auto wrong = authorizationOf({.token = "SECRET\nX: y"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text().find("SECRET"), std::string::npos);
  EXPECT_FALSE(authorizationOf({.token_file = write("token", " \n")}));
  EXPECT_EQ(authorizationOf({.token_file = folder_.path() + "/none"}).error().code,
            Code::kNotFound);
}

}  // namespace
}  // namespace viaduct::meet::kubernetes
