// Faults of the store and of the network: errors, never wrong bytes, within the deadline.
#include "object/object_testing.h"

namespace viaduct::testing {
namespace {

class ObjectFaults : public ObjectTest {
 protected:
  // Reads an object while the server has a fault.
  Status readWith(const std::string& fault, const std::string& retries = "8") {
    more_["VIADUCT_OBJECT_RETRIES"] = retries;
    open();
    tell("put kv k " + std::to_string(kBytes));
    tell("fault " + fault);
    return read(memory_, "k");
  }
  // Begins a transfer, and waits until the server holds back `hung` of its requests.
  void begin(OpKind kind, std::uint64_t bytes, const std::string& fault, int hung = 1,
             Duration deadline = 60s) {
    tell("fault " + fault);
    memory_ = kind == OpKind::kWrite ? pattern(bytes) : std::vector<std::uint64_t>(bytes / 8 + 1);
    const bool writes = kind == OpKind::kWrite;
    auto object = pinObject("k", {.bytes = writes ? bytes : 0, .create = writes});
    ASSERT_TRUE(object) << object.error().text();
    object_.emplace(*std::move(object));
    host_.emplace(*pinHost(memory_, bytes));
    transfer_.emplace(*plan(kind, *host_, *object_));
    ASSERT_TRUE(transfer_->post({.deadline = deadline}));
    ASSERT_EQ(tell("hung " + std::to_string(hung)), "ok");
  }
  // Expects that nobody writes the memory any more.
  void expectMemoryAtRest() {
    std::fill(memory_.begin(), memory_.end(), 7);
    tell("release");
    // A later request is answered after the released ones have gone.
    tell("put kv other 8");
    std::vector<std::uint64_t> other(1);
    EXPECT_TRUE(read(other, "other"));
    EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 7),
              static_cast<std::ptrdiff_t>(memory_.size()));
  }

  static constexpr std::uint64_t kBytes = 3 * kMiB;
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(kBytes / 8);
  std::optional<Pin> object_, host_;
  std::optional<Transfer> transfer_;
};

TEST_F(ObjectFaults, RepeatsAfterErrorsOfTheServerAndTheConnection) {
  open();
  tell("put kv k " + std::to_string(kBytes));
  for (const char* kind : {"500", "503", "reset", "cut"}) {
    std::fill(memory_.begin(), memory_.end(), 0);
    tell(std::string("fault GET ") + kind + " 2");
    const auto done = read(memory_, "k");
    ASSERT_TRUE(done) << kind << done.error().text();
    EXPECT_TRUE(isPattern(memory_, kBytes)) << kind;
  }
  EXPECT_EQ(tell("count GET"), "12");
}

TEST_F(ObjectFaults, GivesUpAfterSoManyTries) {
  const auto done = readWith("GET 503 100", "2");
  expectSays(done, Code::kBusy, {"GET s3://kv/k", "HTTP 503 SlowDown", "(attempt 3)"});
  EXPECT_EQ(tell("count GET"), "3");
}

TEST_F(ObjectFaults, AShortBodyIsAnError) {
  expectSays(readWith("GET cut 100", "1"), Code::kPeerLost, {"GET s3://kv/k", "(attempt 2)"});
}

TEST_F(ObjectFaults, AnAnswerWithFewerBytesThanItsRangeIsAnError) {
  expectSays(readWith("GET few 1"), Code::kProtocol, {"another length than its range"});
}

TEST_F(ObjectFaults, AnotherRangeIsAnErrorAndNotData) {
  expectSays(readWith("GET wrongrange 1"), Code::kProtocol, {"Content-Range: bytes 1-3145728/"});
  EXPECT_EQ(memory_, std::vector<std::uint64_t>(kBytes / 8));
}

TEST_F(ObjectFaults, ARangeWithoutContentRangeIsAnErrorAndNotData) {
  expectSays(readWith("GET norange 1"), Code::kProtocol, {"Content-Range: none"});
  EXPECT_EQ(memory_, std::vector<std::uint64_t>(kBytes / 8));
}

TEST_F(ObjectFaults, TheWholeObjectInsteadOfARangeIsAnErrorAndNotData) {
  expectSays(readWith("GET whole 1"), Code::kProtocol, {"HTTP 200 in answer to a range"});
  EXPECT_EQ(memory_, std::vector<std::uint64_t>(kBytes / 8));
}

TEST_F(ObjectFaults, AnObjectThatIsReplacedIsAnError) {
  expectSays(readWith("GET replace 1"), Code::kInvalid, {"PreconditionFailed", "pin the object"});
}

TEST_F(ObjectFaults, TellsWhatIsWrongWithKeysAndNames) {
  open();
  const auto missing = pinObject("nothing");
  ASSERT_FALSE(missing);
  expectSays(missing.error(), Code::kNotFound, {"s3://kv/nothing", "HTTP 404 NoSuchKey"});
  const auto nobody = agent_->pin(Segment::object("s3://nobody/k"));
  ASSERT_FALSE(nobody);
  expectSays(nobody.error(), Code::kNotFound, {"s3://nobody/k", "NoSuchBucket"});
  expectSays(move(OpKind::kWrite, pattern(8), "../k", {.bytes = 0, .create = true}), Code::kInvalid,
             {"FileOptions::bytes"});
}

TEST_F(ObjectFaults, TellsAWrongSecretFromAWrongKey) {
  more_ = {{"AWS_SECRET_ACCESS_KEY", "othersecret"}};
  open();
  auto pin = pinObject("k");
  ASSERT_FALSE(pin);
  expectSays(pin.error(), Code::kDenied,
             {"HTTP 403 SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"});
  EXPECT_EQ(pin.error().text().find("othersecret"), std::string::npos);
  self_.reset();
  agent_.reset();
  more_ = {{"AWS_ACCESS_KEY_ID", "OTHERKEY"}};
  open();
  pin = pinObject("k");
  ASSERT_FALSE(pin);
  expectSays(pin.error(), Code::kDenied, {"HTTP 403 InvalidAccessKeyId"});
}

TEST_F(ObjectFaults, TellsByHowMuchTheClockIsOff) {
  open();
  tell("clock 7200");
  const auto pin = pinObject("k");
  ASSERT_FALSE(pin);
  expectSays(pin.error(), Code::kDenied, {"RequestTimeTooSkewed", " s behind that of the store"});
}

TEST_F(ObjectFaults, AFailedUploadIsAborted) {
  more_["VIADUCT_OBJECT_RETRIES"] = "0";
  open();
  tell("fault PUT 500 1 partNumber=2");
  const auto done = write("k", 20 * kMiB);
  expectSays(done, Code::kDevice, {"PUT s3://kv/k part 2 of upload id+1/=", "500"});
  agent_.reset();  // waits for the abort
  EXPECT_EQ(tell("uploads"), "0");
  EXPECT_EQ(tell("count DELETE"), "1");
  EXPECT_EQ(tell("same kv k 20"), "absent");
}

TEST_F(ObjectFaults, AnErrorBehindStatus200FailsTheWrite) {
  more_["VIADUCT_OBJECT_RETRIES"] = "0";
  open();
  tell("fault POST error200 1 uploadId");
  expectSays(write("k", 20 * kMiB), Code::kInvalid,
             {"complete s3://kv/k of upload", "HTTP 200 InternalError"});
  EXPECT_EQ(tell("same kv k 20"), "absent");
  agent_.reset();
  EXPECT_EQ(tell("count DELETE"), "1");
}

TEST_F(ObjectFaults, RepeatsThePartsOfAnUpload) {
  open();
  for (const char* fault : {"PUT 503 2 partNumber=2", "PUT reset 1 partNumber=1",
                            "POST 500 1 uploads", "POST error200 1 uploadId"})
    tell(std::string("fault ") + fault);
  const auto done = write("k", 20 * kMiB);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv k " + std::to_string(20 * kMiB)), "yes");
}

TEST_F(ObjectFaults, TheObjectIsInvisibleUntilItsWriteIsComplete) {
  open();
  begin(OpKind::kWrite, 20 * kMiB, "POST hang 1 uploadId");
  EXPECT_EQ(tell("same kv k " + std::to_string(20 * kMiB)), "absent");
  tell("release");
  const auto done = transfer_->wait(60s);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv k " + std::to_string(20 * kMiB)), "yes");
}

TEST_F(ObjectFaults, ACancelEndsReadsAndNobodyTouchesTheMemory) {
  open();
  tell("put kv k " + std::to_string(20 * kMiB));
  begin(OpKind::kRead, 20 * kMiB, "GET stall 3", 3);
  transfer_->cancel();
  expectSays(transfer_->wait(60s), Code::kCancelled, {});
  expectMemoryAtRest();
}

TEST_F(ObjectFaults, ACancelAbortsTheUpload) {
  open();
  begin(OpKind::kWrite, 20 * kMiB, "PUT hang 1");
  transfer_->cancel();
  expectSays(transfer_->wait(60s), Code::kCancelled, {});
  transfer_.reset();
  object_.reset();
  host_.reset();
  agent_.reset();  // waits for the abort
  EXPECT_EQ(tell("uploads"), "0");
  EXPECT_EQ(tell("count DELETE"), "1");
}

// The upload has an id only in an answer that comes after the cancel.
TEST_F(ObjectFaults, ACancelAbortsAnUploadThatJustBegins) {
  open();
  begin(OpKind::kWrite, 20 * kMiB, "POST hang 1 uploads");
  transfer_->cancel();
  expectSays(transfer_->wait(60s), Code::kCancelled, {});
  tell("fault DELETE hang 1");
  tell("release");
  EXPECT_EQ(tell("hung 2"), "ok") << "the abort has arrived";
  EXPECT_EQ(tell("uploads"), "1");
  tell("release");
  transfer_.reset();
  object_.reset();
  host_.reset();
  agent_.reset();
  EXPECT_EQ(tell("uploads"), "0");
}

TEST_F(ObjectFaults, APinThatIsReleasedEndsItsTransfer) {
  open();
  tell("put kv k " + std::to_string(kBytes));
  begin(OpKind::kRead, kBytes, "GET stall 1");
  const auto released = host_->release();
  EXPECT_TRUE(released) << released.error().text();
  EXPECT_FALSE(transfer_->wait(60s));
  expectMemoryAtRest();
}

TEST_F(ObjectFaults, AClosedAgentEndsItsTransfers) {
  open();
  tell("put kv k " + std::to_string(kBytes));
  begin(OpKind::kRead, kBytes, "GET stall 1");
  agent_->close();
  EXPECT_FALSE(transfer_->wait(60s));
}

TEST_F(ObjectFaults, ADeadServerEndsByTheDeadline) {
  more_["VIADUCT_OBJECT_RETRIES"] = "100";
  open();
  tell("put kv k " + std::to_string(20 * kMiB));
  const auto deadline = 2s;
  const auto began = Clock::now();
  begin(OpKind::kRead, 20 * kMiB, "GET stall 3", 3, deadline);
  server_->kill();
  expectSays(transfer_->wait(60s), Code::kTimeout, {"in flight at the deadline"});
  EXPECT_GE(Clock::now() - began, deadline);
}

TEST_F(ObjectFaults, AFrozenServerEndsByTheDeadline) {
  open();
  tell("put kv k " + std::to_string(kBytes));
  begin(OpKind::kRead, kBytes, "GET stall 1", 1, 1s);
  server_->stop();
  expectSays(transfer_->wait(60s), Code::kTimeout, {});
  server_->resume();
  expectMemoryAtRest();
}

TEST_F(ObjectFaults, ADeadServerIsNamedIfNoRetryIsLeft) {
  more_["VIADUCT_OBJECT_RETRIES"] = "1";
  open();
  server_->kill();
  expectSays(write("k", 1000), Code::kPeerLost, {"PUT s3://kv/k", "127.0.0.1:" + port_, "refused"});
}

}  // namespace
}  // namespace viaduct::testing
