#include "backends/object/task.h"

#include <gtest/gtest.h>

#include "base/sizes.h"

namespace viaduct::object {
namespace {

using base::kMiB;

ObjectPin pinOf(std::uint64_t bytes, const std::string& etag = "") {
  return {.facts = std::make_shared<const ObjectFacts>(
              ObjectFacts{.name = {"b", "k"}, .bytes = bytes, .etag = etag}),
          .bytes = bytes};
}
std::string rangeOf(const Task& task, Ask ask) { return task.request(ask).head.front(); }

TEST(ReadTask, JoinsPiecesThatTouchInTheObject) {
  // The pieces are bytes 0-99 and 200-299 of the object, scattered in memory, and in any order.
  const auto task = Task::read(pinOf(1000), {{200, 7000, 100}, {50, 5000, 50}, {0, 9000, 50}}, 80);
  ASSERT_TRUE(task) << task.error().text();
  std::vector<std::string> ranges;
  for (const Ask ask : (*task)->begin()) ranges.push_back(rangeOf(**task, ask));
  EXPECT_EQ(ranges, (std::vector<std::string>{"Range: bytes=0-79", "Range: bytes=80-99",
                                              "Range: bytes=200-279", "Range: bytes=280-299"}));
}

TEST(ReadTask, EndsWithItsLastRange) {
  const auto task = Task::read(pinOf(100), {{0, 1, 100}}, 50);
  const s3::Answer answer{.status = 206, .etag = "\"v1\""};
  EXPECT_TRUE((*task)->answered((*task)->begin()[1], answer));
  EXPECT_FALSE((*task)->done());
  // Later requests name the version that the first answer had.
  EXPECT_EQ((*task)->request((*task)->begin()[0]).head.back(), "If-Match: \"v1\"");
  EXPECT_TRUE((*task)->answered((*task)->begin()[0], answer));
  EXPECT_TRUE((*task)->done());
}

TEST(ReadTask, RefusesRangesOfTwoVersions) {
  const auto task = Task::read(pinOf(100, "\"v1\""), {{0, 1, 100}}, 50);
  const auto wrong = (*task)->answered((*task)->begin()[0], {.status = 206, .etag = "\"v2\""});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text().find("replaced while it was read"), std::string::npos);
}

TEST(WriteTask, HasToCoverTheObject) {
  EXPECT_TRUE(Task::write(pinOf(100), {{60, 1, 40}, {0, 500, 60}}, kMiB));
  for (const auto& pieces :
       {std::vector<ObjectPiece>{{0, 1, 99}}, std::vector<ObjectPiece>{{1, 1, 99}},
        std::vector<ObjectPiece>{{0, 1, 40}, {50, 1, 50}}}) {
    const auto task = Task::write(pinOf(100), pieces, kMiB);
    ASSERT_FALSE(task);
    EXPECT_EQ(task.error().code, Code::kUnsupported);
    EXPECT_NE(task.error().remedy.find("all bytes of the pin"), std::string::npos);
  }
}

TEST(WriteTask, IsOnePutIfItFits) {
  const auto task = Task::write(pinOf(8 * kMiB), {{0, 1, 8 * kMiB}}, 8 * kMiB);
  const auto first = (*task)->begin();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].step, TaskStep::kPut);
  EXPECT_TRUE((*task)->answered(first[0], {.status = 200}));
  EXPECT_TRUE((*task)->done());
}

TEST(WriteTask, BeginsUploadsPartsAndCompletes) {
  const auto made = Task::write(pinOf(20 * kMiB), {{0, 1, 20 * kMiB}}, 8 * kMiB);
  Task& task = **made;
  ASSERT_EQ(task.begin().front().step, TaskStep::kCreate);
  const auto parts = task.answered(task.begin().front(),
                                   {.status = 200, .body = "<R><UploadId>u&amp;1</UploadId></R>"});
  ASSERT_TRUE(parts) << parts.error().text();
  ASSERT_EQ(parts->size(), 3U);
  EXPECT_EQ(task.upload(), "u&1");
  EXPECT_EQ(s3::encodeQuery(task.query((*parts)[2])), "partNumber=3&uploadId=u%261");
  std::vector<Ask> last;
  for (const Ask part : {(*parts)[2], (*parts)[0], (*parts)[1]})
    last = *task.answered(part, {.status = 200, .etag = "\"e" + std::to_string(part.part) + "\""});
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].step, TaskStep::kComplete);
  EXPECT_EQ(task.request(last[0]).body,
            "<CompleteMultipartUpload>"
            "<Part><PartNumber>1</PartNumber><ETag>&quot;e0&quot;</ETag></Part>"
            "<Part><PartNumber>2</PartNumber><ETag>&quot;e1&quot;</ETag></Part>"
            "<Part><PartNumber>3</PartNumber><ETag>&quot;e2&quot;</ETag></Part>"
            "</CompleteMultipartUpload>");
  EXPECT_TRUE(task.answered(last[0], {.status = 200}));
  EXPECT_TRUE(task.done());
  EXPECT_TRUE(task.upload().empty()) << "there is nothing to abort";
}

TEST(WriteTask, HasAtMostTenThousandParts) {
  const std::uint64_t bytes = 200'000 * kMiB + 1;
  const auto task = Task::write(pinOf(bytes), {{0, 1, bytes}}, 8 * kMiB);
  const auto parts = (*task)->answered((*task)->begin().front(),
                                       {.status = 200, .body = "<UploadId>u</UploadId>"});
  EXPECT_EQ(parts->size(), 9'524U) << "parts of 21 MiB";
}

TEST(WriteTask, NamesTheUploadInItsErrors) {
  const auto task = Task::write(pinOf(20 * kMiB), {{0, 1, 20 * kMiB}}, 8 * kMiB);
  const auto parts = (*task)->answered((*task)->begin().front(),
                                       {.status = 200, .body = "<UploadId>u7</UploadId>"});
  EXPECT_EQ((*task)->operation((*parts)[1]), "PUT s3://b/k part 2 of upload u7");
}

TEST(SharedUpload, IsATaskForEachStep) {
  const s3::ObjectName name{"b", "k"};
  const auto create = Task::create(name);
  EXPECT_TRUE(create->answered(create->begin().front(),
                               {.status = 200, .body = "<UploadId>u7</UploadId>"}));
  EXPECT_TRUE(create->done());
  EXPECT_EQ(create->takeUpload(), "u7");
  const auto part = Task::part(name, "u7", 5, {{0, 1, kMiB}, {kMiB, 9, kMiB}});
  const Ask ask = part->begin().front();
  EXPECT_EQ(s3::encodeQuery(part->query(ask)), "partNumber=5&uploadId=u7");
  EXPECT_EQ(part->operation(ask), "PUT s3://b/k part 5 of upload u7");
  EXPECT_TRUE(part->takeUpload().empty()) << "other parts need it";
  EXPECT_TRUE(part->answered(ask, {.status = 200, .etag = "e5"}));
  EXPECT_TRUE(part->done());
  EXPECT_EQ(part->uploadParts().front().etag, "e5");
  const auto complete = Task::complete(name, "u7", {{5, "e5"}, {9, "e9"}});
  EXPECT_EQ(complete->request(complete->begin().front()).body,
            "<CompleteMultipartUpload>"
            "<Part><PartNumber>5</PartNumber><ETag>e5</ETag></Part>"
            "<Part><PartNumber>9</PartNumber><ETag>e9</ETag></Part>"
            "</CompleteMultipartUpload>");
  EXPECT_TRUE(complete->takeUpload().empty());
}

}  // namespace
}  // namespace viaduct::object
