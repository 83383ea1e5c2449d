// Paths of the build that tests need. A test program has those that its CMakeLists.txt gives it by
// viaduct_test_paths. Threads: constants.
#pragma once

namespace viaduct::testing {

extern const char* const kSourceDir;
extern const char* const kProgram;
extern const char* const kProcessPeer;
extern const char* const kParcelStormPeer;
extern const char* const kTrafficPeer;
extern const char* const kPublisher;
extern const char* const kRailsPeer;
extern const char* const kGreedyHolder;
extern const char* const kStrangers;
extern const char* const kMeetingMember;
extern const char* const kEtcdMember;
extern const char* const kFakeCuda;
extern const char* const kCudaUnderTest;
extern const char* const kFakeS3;
extern const char* const kFakeKube;
extern const char* const kServersPython;
extern const char* const kTorchStore;
extern const char* const kLieCopies;
extern const char* const kLieReads;
extern const char* const kLieSlowClock;
extern const char* const kLieOtherHost;
extern const char* const kLieProviders;

}  // namespace viaduct::testing
