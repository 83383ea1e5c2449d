#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/net/aead.h"
#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/live.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

// Gives the node all that protection needs.
void protect(testing::Fixture& folder) {
  folder.live.aes_gcm = folder.live.chacha = folder.live.ipsec_mb = folder.live.aes_instructions =
      Tried{.ok = true};
}

std::string finesOf(const testing::Fixture& folder) {
  std::string out;
  const Findings findings = diagnose(folder.node(), Codes{"privacy"});
  for (const Fine& one : findings.fines()) out += one.what + "\n";
  return out;
}

TEST(CheckPrivacy, SaysWhatIsSet) {
  auto folder = testing::smallVm();
  protect(folder);
  EXPECT_NE(finesOf(folder).find("VIADUCT_PRIVACY is auto"), std::string::npos);
  folder.variables["VIADUCT_PRIVACY"] = "encrypted";
  EXPECT_NE(finesOf(folder).find("VIADUCT_PRIVACY is encrypted."), std::string::npos);
  EXPECT_NE(finesOf(folder).find("libipsec-mb seals data."), std::string::npos);
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  folder.variables["VIADUCT_PRIVACY"] = "off";
  EXPECT_EQ(findingOf(folder, "privacy.off").severity, Severity::kInfo);
}

TEST(CheckPrivacy, NamesAMissingCipher) {
  auto folder = testing::smallVm();
  protect(folder);
  folder.live.aes_gcm = Tried{.ok = false, .text = "libcrypto has no AES-256-GCM"};
  EXPECT_EQ(codesAboveInfo(folder), Codes{"privacy.no-cipher"});
  EXPECT_EQ(findingOf(folder, "privacy.no-cipher").what, "libcrypto has no AES-256-GCM.");
  folder.live.chacha = Tried{.ok = false};
  EXPECT_EQ(findingOf(folder, "privacy.no-cipher").what,
            "libcrypto has no AES-256-GCM and ChaCha20-Poly1305.");
  folder.live.aes_gcm = Tried{.ok = true};
  EXPECT_EQ(findingOf(folder, "privacy.no-cipher").what, "libcrypto has no ChaCha20-Poly1305.");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"privacy.no-cipher"});
  folder.variables["VIADUCT_PRIVACY"] = "off";
  EXPECT_EQ(findingOf(folder, "privacy.no-cipher").severity, Severity::kInfo) << "no data needs it";
  folder.live.aes_gcm = Tried{.ok = false};
  EXPECT_EQ(codesAboveInfo(folder), Codes{"privacy.no-cipher"}) << "sessions do";
}

TEST(CheckPrivacy, NamesAProcessorWithoutAesAndAMissingLibrary) {
  auto folder = testing::smallVm();
  protect(folder);
  folder.live.ipsec_mb = Tried{.ok = false};
  EXPECT_EQ(findingOf(folder, "privacy.no-ipsec-mb").severity, Severity::kInfo);
  folder.live.aes_instructions = Tried{.ok = false};
  EXPECT_EQ(findingOf(folder, "privacy.no-aes").severity, Severity::kInfo) << "heads alone";
  EXPECT_FALSE(diagnose(folder.node()).has("privacy.no-ipsec-mb")) << "it could not be used";
  folder.variables["VIADUCT_PRIVACY"] = "integrity";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"privacy.no-aes"});
  folder.live.aes_instructions.reset();
  EXPECT_EQ(findingOf(folder, "privacy.unknown").severity, Severity::kInfo);
}

TEST(CheckPrivacy, AStaticDoctorDoesNotLookForIpsecMb) {
  auto folder = testing::smallVm();
  protect(folder);
  folder.live.ipsec_mb.reset();
  EXPECT_TRUE(diagnose(folder.node()).has("privacy.unknown"));
  folder.live.one_file = true;
  EXPECT_FALSE(diagnose(folder.node()).has("privacy.unknown"));
  EXPECT_FALSE(diagnose(folder.node()).has("privacy.no-ipsec-mb"));
}

TEST(CheckPrivacy, NamesAWeakSecretAndDoesNotShowIt) {
  auto folder = testing::smallVm();
  protect(folder);
  folder.variables["VIADUCT_SECRET"] = "swordfish";
  EXPECT_EQ(codesAboveInfo(folder), Codes{"privacy.weak-secret"});
  const Finding finding = findingOf(folder, "privacy.weak-secret");
  for (const std::string& text : {finding.what, finding.evidence.at(0).value, finding.cause})
    EXPECT_EQ(text.find("swordfish"), std::string::npos) << text;
  folder.variables["VIADUCT_SECRET"] = "0b7e151628aed2a6abf7158809cf4f3c";
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckPrivacy, ThisMachineIsTried) {
  const Live live = collectLive(host::Tree("/nowhere"), {}, {});
  ASSERT_TRUE(live.aes_gcm && live.chacha && live.ipsec_mb && live.aes_instructions);
  EXPECT_TRUE(live.aes_gcm->ok) << live.aes_gcm->text;
  EXPECT_TRUE(live.chacha->ok) << live.chacha->text;
  EXPECT_EQ(live.aes_instructions->ok, base::hasFastAes());
  EXPECT_EQ(live.ipsec_mb->ok, base::makeIpsecAead() != nullptr);
}

}  // namespace
}  // namespace viaduct::diag
