#include "measure/workload/pipeline_routes.h"

#include <gtest/gtest.h>

namespace viaduct::measure::pipeline {
namespace {

std::vector<Route> routes(const std::string& text) {
  const auto pipeline = parsePipeline(text);
  EXPECT_TRUE(pipeline) << text;
  return routesOf(*pipeline);
}

using Kind = End::Kind;

TEST(Routes, MemoryBetweenTwoStagesIsARing) {
  const auto all = routes("file:/a,host,net,host,file:/b");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].from.kind, Kind::kStorage);
  EXPECT_EQ(all[0].into.kind, Kind::kRing);
  EXPECT_EQ(all[1].from.kind, Kind::kRing);
  EXPECT_EQ(all[1].into.kind, Kind::kRing);
  EXPECT_EQ(all[2].from.kind, Kind::kRing);
  EXPECT_EQ(all[2].into.kind, Kind::kStorage);
  EXPECT_NE(all[0].into.label, all[1].from.label) << "stages run together without shared memory";
}

TEST(Routes, MemoryAtAnEndHasAllBytes) {
  const auto first = routes("host,net,host,file:/b"), last = routes("file:/a,host,net,host");
  EXPECT_EQ(first[0].from.kind, Kind::kMemory);
  EXPECT_EQ(first[0].into.kind, Kind::kRing);
  EXPECT_EQ(last[1].from.kind, Kind::kRing);
  EXPECT_EQ(last[1].into.kind, Kind::kMemory);
  EXPECT_EQ(routes("file:/a,host")[0].into.kind, Kind::kMemory);
}

TEST(Routes, AnObjectIsStoredFromAllOfItsBytes) {
  const auto all = routes("file:/a,host,s3://kv/b");
  EXPECT_EQ(all[0].into.kind, Kind::kRing);
  EXPECT_EQ(all[1].from.kind, Kind::kMemory);
}

TEST(Routes, ThePipelineGoesFromTheFirstEndToTheLast) {
  const auto all = routes("file:/a,host,net,host,file:/b");
  EXPECT_EQ(all[3].name, "pipeline");
  EXPECT_EQ(all[3].from.label, all[0].from.label);
  EXPECT_EQ(all[3].into.label, all[2].into.label);
  EXPECT_EQ(all[3].from.rank, 0U);
  EXPECT_EQ(all[3].into.rank, 1U);
  EXPECT_EQ(all[2].from.rank, 1U) << "the second process stores";
  EXPECT_EQ(routes("file:/a,host,file:/b")[1].from.rank, 0U) << "there is one process";
}

TEST(Routes, WithAGpuEachStageIsALegFromTheEndOfTheLegBefore) {
  const auto all = routes("file:/a,cuda0,net,cuda1,file:/b");
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[3].name, "load");
  EXPECT_EQ(all[3].from.label, all[0].from.label);
  EXPECT_EQ(all[3].into.label, all[4].from.label);
  EXPECT_EQ(all[4].into.label, all[5].from.label);
  EXPECT_EQ(all[5].into.label, all[2].into.label);
  EXPECT_EQ(all[3].into.kind, Kind::kRing) << "the memory on the GPU is bounded";
  EXPECT_EQ(all[3].into.gpu, 0U);
  EXPECT_EQ(all[4].into.gpu, 1U);
  EXPECT_EQ(all[4].into.rank, 1U);
  EXPECT_FALSE(all[5].into.gpu);
}

TEST(Routes, AnObjectBehindAGpuIsStoredFromMemoryOfAllItsBytes) {
  const auto all = routes("file:/a,cuda0,s3://kv/b");
  EXPECT_EQ(all[2].into.kind, Kind::kMemory);
  EXPECT_EQ(all[3].from.kind, Kind::kMemory);
}

TEST(Routes, ThePipelineOfARoundIsAChainOfItsLegs) {
  const auto cases = casesOf(routes("file:/a,cuda0,net,cuda1"), 2);
  ASSERT_EQ(cases.size(), 4U);
  EXPECT_FALSE(cases[2].chain);
  EXPECT_TRUE(cases[3].chain);
  EXPECT_EQ(cases[3].routes, (std::vector<std::uint32_t>{2, 3}));
}

TEST(Routes, ARoundHasEachStageAloneAllTogetherAndThePipeline) {
  const auto cases = casesOf(routes("file:/a,host,net,host"), 2);
  ASSERT_EQ(cases.size(), 4U);
  EXPECT_EQ(cases[0].name, "load alone");
  EXPECT_EQ(cases[2].routes, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(cases[3].routes, std::vector<std::uint32_t>{2});
  EXPECT_EQ(casesOf(routes("host,net,host"), 1).size(), 1U) << "one stage has no pipeline";
}

}  // namespace
}  // namespace viaduct::measure::pipeline
