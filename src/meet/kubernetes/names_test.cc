#include "meet/kubernetes/names.h"

#include <gtest/gtest.h>

namespace viaduct::meet::kubernetes {
namespace {

TEST(KubernetesNames, APlaceHasAGroupAndPerhapsANamespace) {
  const auto plain = parsePlaceName("decode");
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(plain->kube_namespace, "");
  EXPECT_EQ(plain->group, "decode");
  const auto both = parsePlaceName("serving/Decode pool 1");
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_EQ(both->kube_namespace, "serving");
  EXPECT_EQ(both->group, "Decode pool 1");
}

TEST(KubernetesNames, MalformedPlacesAreRefusedWithTheForm) {
  for (const char* where : {"", "/g", "ns/", "Ns/g", "a/b/c", "-a/g", "a\nb"}) {
    const auto place = parsePlaceName(where);
    ASSERT_FALSE(place) << where;
    EXPECT_EQ(place.error().code, Code::kInvalid);
    EXPECT_NE(place.error().remedy.find("kubernetes:NAMESPACE/GROUP"), std::string::npos);
  }
}

TEST(KubernetesNames, OnlyValidLabelsKeepTheirText) {
  EXPECT_EQ(labelOf("decode-0"), "decode-0");
  for (const std::string text : {"Decode", "a.b", "-a", "a-", "a/b", "x-decode", "\xc3\xa4"}) {
    const std::string label = labelOf(text);
    EXPECT_TRUE(label.starts_with("x-")) << text;
    EXPECT_EQ(label.size(), 42U);
    EXPECT_EQ(label, labelOf(text));
  }
  EXPECT_NE(labelOf("Decode"), labelOf("DECODE"));
  EXPECT_EQ(labelOf(std::string(63, 'a')).size(), 63U);
  EXPECT_EQ(labelOf(std::string(64, 'a')).size(), 42U);
  EXPECT_NE(labelOf(labelOf("Decode")), labelOf("Decode")) << "a name cannot pass as a hash";
}

TEST(KubernetesNames, GroupsOfTwoNamespacesDiffer) {
  EXPECT_EQ(groupLabel("", "g"), "g");
  EXPECT_EQ(groupLabel("/viaduct/", "g"), "g");
  EXPECT_NE(groupLabel("/other", "g"), "g");
  EXPECT_NE(groupLabel("/other", "g"), groupLabel("/another", "g"));
  EXPECT_NE(leaseName("a", "b-c"), leaseName("a-b", "c"));
}

TEST(KubernetesNames, ASelectorNamesFewAndSelectsAllOfMany) {
  EXPECT_EQ(selectorOf("g", {"a"}),
            "labelSelector=viaduct%2Fgroup%3Dg&fieldSelector=metadata.name%3Dviaduct.g.a");
  EXPECT_EQ(selectorOf("g", {"a", "b"}),
            "labelSelector=viaduct%2Fgroup%3Dg%2Cviaduct%2Fname%20in%20%28a%2Cb%29");
  EXPECT_EQ(selectorOf("g", std::vector<std::string>(kMostSelected + 1, "a")),
            "labelSelector=viaduct%2Fgroup%3Dg");
}

}  // namespace
}  // namespace viaduct::meet::kubernetes
