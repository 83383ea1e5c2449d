#include "meet/place.h"

#include <gtest/gtest.h>

namespace viaduct::meet {
namespace {

struct Choice {
  std::string place, where;
  friend bool operator==(const Choice&, const Choice&) = default;
};
Choice chosen(const std::string& where) {
  const auto place = choosePlace(where);
  if (!place) return {place.error().text(), ""};
  return {std::string(place->entry->name), place->where};
}

TEST(ChoosePlace, ASchemeNamesThePlace) {
  EXPECT_EQ(chosen("embedded:node1:7000"), (Choice{"embedded", "node1:7000"}));
  EXPECT_EQ(chosen("etcd:node1"), (Choice{"etcd", "node1"}));
  EXPECT_EQ(chosen("etcd:http://a,http://b"), (Choice{"etcd", "http://a,http://b"}));
}

TEST(ChoosePlace, AUrlIsUnchanged) {
  EXPECT_EQ(chosen("http://a:1,http://b:2"), (Choice{"etcd", "http://a:1,http://b:2"}));
  EXPECT_EQ(chosen("https://a"), (Choice{"etcd", "https://a"}));
}

TEST(ChoosePlace, AnAddressWithoutASchemeIsTheEmbeddedPlace) {
  for (const char* where : {"node1:7000", "10.0.0.1:7000", "[::1]:7000", "fd00::1", "fd00:a::1",
                            "localhost:", "localhost", "", ":7000", "head.cluster:seven"})
    EXPECT_EQ(chosen(where), (Choice{"embedded", where}));
}

TEST(ChoosePlace, AnUnknownSchemeListsTheKnownOnes) {
  for (const char* where : {"consul:agents", "zk://a:1", "consul:a:1", "localhost:seven"}) {
    const auto place = choosePlace(where);
    ASSERT_FALSE(place) << where;
    EXPECT_EQ(place.error().code, Code::kInvalid);
    for (const char* said : {"HOST:PORT", "embedded:", "etcd:", "http:", "https:", where})
      EXPECT_NE(place.error().text().find(said), std::string::npos) << place.error().text();
  }
}

TEST(ChoosePlace, EachSchemeBelongsToOnePlace) {
  std::string all = " ";
  for (const PlaceEntry& entry : placeCatalogue())
    for (const std::string_view scheme : entry.schemes) {
      EXPECT_EQ(all.find(" " + std::string(scheme) + " "), std::string::npos) << scheme;
      all += std::string(scheme) + " ";
    }
}

}  // namespace
}  // namespace viaduct::meet
