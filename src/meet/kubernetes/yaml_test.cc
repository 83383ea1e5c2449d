#include "meet/kubernetes/yaml.h"

#include <gtest/gtest.h>

namespace viaduct::meet::kubernetes {
namespace {

std::string json(std::string_view yaml) {
  const auto read = parseYaml(yaml);
  return read ? base::dumpJson(*read, -1) : read.error().text();
}

TEST(KubernetesYaml, TheFormOfKubectl) {
  EXPECT_EQ(json("---\n"
                 "apiVersion: v1\n"
                 "clusters:\n"
                 "- cluster:\n"
                 "    server: https://10.0.0.1:6443  # the API server\n"
                 "  name: kind\n"
                 "\n"
                 "contexts: []\n"
                 "current-context: \"a: b\"\n"
                 "preferences: {}\n"
                 "users:\n"
                 "  - name: 'it''s'\n"
                 "    user:\n"
                 "      token: abc#def\n"
                 "  - name: null\n"
                 "other:\n"
                 "flag: true\n"),
            R"({"apiVersion":"v1","clusters":[{"cluster":{"server":"https://10.0.0.1:6443"},)"
            R"("name":"kind"}],"contexts":[],"current-context":"a: b","preferences":{},)"
            R"("users":[{"name":"it's","user":{"token":"abc#def"}},{"name":null}],)"
            R"("other":null,"flag":true})");
}

TEST(KubernetesYaml, ListsOfListsAndOfScalars) {
  EXPECT_EQ(json("- a\n- - b\n  - c\n-\n  d: e\n- \"f\\n\"\n"),
            R"(["a",["b","c"],{"d":"e"},"f\n"])");
}

TEST(KubernetesYaml, JsonIsYaml) { EXPECT_EQ(json(R"( {"a":[1,"b"]} )"), R"({"a":[1,"b"]})"); }

TEST(KubernetesYaml, OtherFormsAreRefusedWithTheirLine) {
  const struct {
    const char* text;
    const char* line;
  } kCases[] = {{"a: |\n  b\n", "line 1"},       {"a: b\nc: *d\n", "line 2"},
                {"a: b\n\n  c: d\n", "line 3"},  {"a:\n\tb: c\n", "a tab"},
                {"a: b\nc\n", "line 2"},         {"a: 'b\n", "line 1"},
                {"a: [b, c]\n", "line 1"},       {"", "empty"},
                {"a: \"b\n", "line 1"},          {"- a\nb: c\n", "line 2"},
                {"a: b\n---\nc: d\n", "line 2"}, {"a: !!str b\n", "line 1"}};
  for (const auto& one : kCases) {
    const auto read = parseYaml(one.text);
    ASSERT_FALSE(read) << one.text << base::dumpJson(*read, -1);
    EXPECT_NE(read.error().detail.find(one.line), std::string::npos)
        << one.text << read.error().text();
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "- ";
  EXPECT_FALSE(parseYaml(deep + "a"));
}

}  // namespace
}  // namespace viaduct::meet::kubernetes
