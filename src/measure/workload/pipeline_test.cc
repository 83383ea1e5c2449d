#include "measure/workload/pipeline.h"

#include <gtest/gtest.h>

namespace viaduct::measure::pipeline {
namespace {

using Names = std::vector<std::string>;

struct Valid {
  std::string text;
  Names stages;
  std::string source, destination;  // their paths; empty: memory
};

TEST(Pipeline, ReadsEveryPartOfTheWholePipeline) {
  const std::vector<Valid> all{
      {"file:/a,host", {"load"}, "/a", ""},
      {"host,file:/b", {"store"}, "", "/b"},
      {"host,net,host", {"net"}, "", ""},
      {"file:/a,host,file:/b", {"load", "store"}, "/a", "/b"},
      {"file:/a,host,net,host", {"load", "net"}, "/a", ""},
      {"host,net,host,file:/b", {"net", "store"}, "", "/b"},
      {"file:/a,host,net,host,file:/b", {"load", "net", "store"}, "/a", "/b"},
      {" file:a b , host ", {"load"}, "a b", ""},
      {"object:kv/block/17,host", {"load"}, "s3://kv/block/17", ""},
      {"host,s3://kv/x", {"store"}, "", "s3://kv/x"},
      {"file:/a,cuda0,net,cuda1,file:/b", {"load", "net", "store"}, "/a", "/b"},
      {"file:/a,net,cuda0,file:/b", {"net", "store"}, "/a", "/b"},
      {"file:/a,net,s3://kv/x", {"net"}, "/a", "s3://kv/x"},
      {"file:/a,file:/b", {"copy"}, "/a", "/b"},
      {"cuda0,cuda1", {"copy"}, "", ""},
      {"file:/a,host,cuda0,net,cuda0,host", {"load", "copy 1", "net", "copy 2"}, "/a", ""}};
  for (const Valid& one : all) {
    const auto found = parsePipeline(one.text);
    ASSERT_TRUE(found) << one.text << ": " << found.error().text();
    EXPECT_EQ(found->stages, one.stages) << one.text;
    EXPECT_EQ(found->source() != nullptr ? found->source()->path : "", one.source) << one.text;
    EXPECT_EQ(found->destination() != nullptr ? found->destination()->path : "", one.destination)
        << one.text;
    EXPECT_EQ(found->hasNet(), one.text.find("net") != std::string::npos) << one.text;
    EXPECT_EQ(found->hasGpu(), one.text.find("cuda") != std::string::npos) << one.text;
  }
}

TEST(Pipeline, NamesTheRouteOfEachStage) {
  const auto found = parsePipeline("file:/a,cuda0,net,host,object:kv/b");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->routeOf(0), "file:/a -> cuda0");
  EXPECT_EQ(found->routeOf(1), "cuda0 -> host");
  EXPECT_EQ(found->routeOf(2), "host -> object:kv/b");
}

TEST(Pipeline, EachPlaceBelongsToAProcessAndEachGpuHasItsNumber) {
  const auto found = parsePipeline("file:/a,cuda0,net,cuda11,file:/b");
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found->places.size(), 4U);
  EXPECT_EQ(found->places[1].rank, 0U);
  EXPECT_EQ(found->places[2].rank, 1U);
  EXPECT_EQ(found->places[2].gpu, 11U);
}

struct Wrong {
  std::string text, detail, remedy;
};

TEST(Pipeline, NamesTheWrongEntryItsPositionAndWhatIsAllowed) {
  const std::vector<Wrong> all{
      {"", "the list is empty", "file:/a,host,net"},
      {"  ", "the list is empty", "file:/a,host,net"},
      {"host", "entry 1 (\"host\") is the only entry", "file:/a,host,net"},
      {"file:/a", "entry 1 (\"file:/a\") is the only entry", "file:/a,host,net"},
      {"file:/a,,host", "entry 2 (\"\") is empty", "host, cuda0 or net"},
      {"file:/a,host,", "entry 3 (\"\") is empty", "host, cuda0 or net"},
      {"file:/a,hots", "entry 2 (\"hots\") is unknown", "host, cuda0 or net"},
      {"/a,host", "entry 1 (\"/a\") is unknown", "file:PATH"},
      {"file:/a,gpu:0", "entry 2 (\"gpu:0\") names no GPU", "write cuda0"},
      {"cuda,host", "entry 1 (\"cuda\") names no GPU", "write cuda0"},
      {"cuda:1,host", "entry 1 (\"cuda:1\") names no GPU", "write cuda0"},
      {"cuda4294967296,host", "entry 1 (\"cuda4294967296\") names no GPU", "write cuda0"},
      {"file:,host", "entry 1 (\"file:\") has no path", "file:PATH"},
      {"object:kv,host", "entry 1 (\"object:kv\") does not name", "object:BUCKET/KEY"},
      {"s3:///x,host", "entry 1 (\"s3:///x\") does not name", "object:BUCKET/KEY"},
      {"host,object:kv/", "entry 2 (\"object:kv/\") does not name", "object:BUCKET/KEY"},
      {"host,host", "entry 2 (\"host\") stands directly behind entry 1 (\"host\")", "put net"},
      {"cuda0,cuda0", "entry 2 (\"cuda0\") stands directly behind", "put net between"},
      {"net,host", "entry 1 (\"net\") stands at an end", "before and behind net"},
      {"host,net", "entry 2 (\"net\") stands at an end", "before and behind net"},
      {"cuda0,net,cuda0,net,host", "entry 4 (\"net\") is the second net", "one net at most"},
      {"host,net,net,host", "entry 3 (\"net\") stands directly behind", "put host between"},
      {"host,file:/b,host", "entry 2 (\"file:/b\") stands in the middle", "first and the last"}};
  for (const Wrong& one : all) {
    const auto found = parsePipeline(one.text);
    ASSERT_FALSE(found) << one.text;
    EXPECT_NE(found.error().detail.find(one.detail), std::string::npos)
        << one.text << ": " << found.error().text();
    EXPECT_NE(found.error().remedy.find(one.remedy), std::string::npos)
        << one.text << ": " << found.error().text();
  }
}

}  // namespace
}  // namespace viaduct::measure::pipeline
