#include "measure/pipeline/pipeline.h"

#include <gtest/gtest.h>

namespace viaduct::measure::pipeline {
namespace {

using enum StageKind;

struct Valid {
  std::string text;
  std::vector<StageKind> stages;
  std::string source, destination;  // their paths; empty: host memory
};

TEST(Pipeline, ReadsEveryPartOfTheWholePipeline) {
  const std::vector<Valid> all{{"file:/a,host", {kLoad}, "/a", ""},
                               {"host,file:/b", {kStore}, "", "/b"},
                               {"host,net,host", {kNet}, "", ""},
                               {"file:/a,host,file:/b", {kLoad, kStore}, "/a", "/b"},
                               {"file:/a,host,net,host", {kLoad, kNet}, "/a", ""},
                               {"host,net,host,file:/b", {kNet, kStore}, "", "/b"},
                               {"file:/a,host,net,host,file:/b", {kLoad, kNet, kStore}, "/a", "/b"},
                               {" file:a b , host ", {kLoad}, "a b", ""},
                               {"object:kv/block/17,host", {kLoad}, "s3://kv/block/17", ""},
                               {"host,s3://kv/x", {kStore}, "", "s3://kv/x"}};
  for (const Valid& one : all) {
    const auto found = parsePipeline(one.text);
    ASSERT_TRUE(found) << one.text << ": " << found.error().text();
    EXPECT_EQ(found->stages, one.stages) << one.text;
    EXPECT_EQ(found->source ? found->source->path : "", one.source) << one.text;
    EXPECT_EQ(found->destination ? found->destination->path : "", one.destination) << one.text;
    EXPECT_EQ(found->processes(), found->has(kNet) ? 2U : 1U);
  }
}

TEST(Pipeline, NamesTheRouteOfEachStage) {
  const auto found = parsePipeline("file:/a,host,net,host,object:kv/b");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->routeOf(kLoad), "file:/a -> host");
  EXPECT_EQ(found->routeOf(kNet), "host -> host");
  EXPECT_EQ(found->routeOf(kStore), "host -> object:kv/b");
  EXPECT_TRUE(found->needs(MemoryKind::kFile));
  EXPECT_TRUE(found->needs(MemoryKind::kObject));
  EXPECT_FALSE(parsePipeline("host,net,host")->needs(MemoryKind::kFile));
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
      {"file:/a,,host", "entry 2 (\"\") is empty", "s3://BUCKET/KEY, host or net"},
      {"file:/a,host,", "entry 3 (\"\") is empty", "s3://BUCKET/KEY, host or net"},
      {"file:/a,hots", "entry 2 (\"hots\") is unknown", "s3://BUCKET/KEY, host or net"},
      {"/a,host", "entry 1 (\"/a\") is unknown", "file:PATH"},
      {"file:/a,gpu:0", "entry 2 (\"gpu:0\") is not yet supported", "host or net"},
      {"gpu,host", "entry 1 (\"gpu\") is not yet supported", "host or net"},
      {"file:,host", "entry 1 (\"file:\") has no path", "file:PATH"},
      {"object:kv,host", "entry 1 (\"object:kv\") does not name", "object:BUCKET/KEY"},
      {"s3:///x,host", "entry 1 (\"s3:///x\") does not name", "object:BUCKET/KEY"},
      {"host,object:kv/", "entry 2 (\"object:kv/\") does not name", "object:BUCKET/KEY"},
      {"file:/a,file:/b", "entry 2 (\"file:/b\") stands directly behind entry 1 (\"file:/a\")",
       "put host between"},
      {"file:/a,net,host", "entry 2 (\"net\") stands directly behind entry 1 (\"file:/a\")",
       "put host between"},
      {"host,net,file:/b", "entry 3 (\"file:/b\") stands directly behind entry 2 (\"net\")",
       "put host between"},
      {"host,host", "entry 2 (\"host\") stands directly behind entry 1 (\"host\")", "put net"},
      {"net,host", "entry 1 (\"net\") stands at an end", "put host before and behind"},
      {"host,net", "entry 2 (\"net\") stands at an end", "put host before and behind"},
      {"host,net,host,net,host", "entry 4 (\"net\") is the second net", "one net at most"},
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
