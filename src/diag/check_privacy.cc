// Checks what protects data over TCP: the setting, the ciphers, and the secret that admits peers.
#include <fmt/format.h>

#include <string>

#include "base/net/weak_secret.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

constexpr auto kPrivacy = "VIADUCT_PRIVACY", kSecret = "VIADUCT_SECRET";

// The value of VIADUCT_PRIVACY, which is "auto" by default.
std::string levelOf(const Node& node) {
  const std::string* const set = node.variable(kPrivacy);
  return set == nullptr ? "auto" : *set;
}

// Whether the payload itself has to be proven or encrypted.
bool protectsPayload(const std::string& level) {
  return level == "integrity" || level == "encrypted" || level == "required";
}

void checkLevel(const std::string& level, Findings& findings) {
  if (level != "off")
    return findings.fine(
        level == "auto" ? "VIADUCT_PRIVACY is auto: between hosts, nobody can forge a write over "
                          "TCP. The bytes are readable."
                        : fmt::format("VIADUCT_PRIVACY is {}.", level));
  findings.add({.severity = Severity::kInfo,
                .code = "privacy.off",
                .what = "VIADUCT_PRIVACY=off: data over TCP is not protected.",
                .evidence = {{kPrivacy, level}},
                .cause = "The environment of this process says so, and it holds for its peers too.",
                .fix = "unset VIADUCT_PRIVACY",
                .gain = "Nobody on the path can forge a write. Small transfers take up to a "
                        "microsecond more."});
}

// Sessions over TCP need AES-256-GCM at every level.
void addNoCipher(const Tried& aes, const Tried& chacha, bool off, Findings& findings) {
  findings.add({.severity = off && aes.ok ? Severity::kInfo : Severity::kFailure,
                .code = "privacy.no-cipher",
                .what = fmt::format("libcrypto has no {}.", aes.ok      ? "ChaCha20-Poly1305"
                                                            : chacha.ok ? "AES-256-GCM"
                                                                        : "AES-256-GCM and "
                                                                          "ChaCha20-Poly1305"),
                .evidence = {{"libcrypto", aes.ok ? chacha.text : aes.text}},
                .cause = "This libcrypto, or its configuration in openssl.cnf, leaves it out.",
                .fix = "openssl list -cipher-algorithms\n"
                       "Then activate the default provider in openssl.cnf, or unset OPENSSL_CONF.",
                .gain = "Sessions and transfers over TCP between hosts work."});
}

void addNoInstructions(const std::string& level, Findings& findings) {
  findings.add({.severity = protectsPayload(level) ? Severity::kWarning : Severity::kInfo,
                .code = "privacy.no-aes",
                .what = "This processor shows no instructions for AES, so this agent and all its "
                        "peers use ChaCha20-Poly1305.",
                .evidence = {{"cpuid", "no aes, or no pclmulqdq or pmull"}, {kPrivacy, level}},
                .cause = "The processor is old, or a hypervisor hides its flags.",
                .fix = "grep -c -w aes /proc/cpuinfo\n"
                       "In a virtual machine: the CPU model host-passthrough",
                .gain = "Sealing takes a quarter to two thirds of the processor time."});
}

void addNoFastLibrary(const std::string& level, Findings& findings) {
  findings.add({.severity = Severity::kInfo,
                .code = "privacy.no-ipsec-mb",
                .what = "libipsec-mb is not here; libcrypto seals data.",
                .evidence = {{"libIPSec_MB.so.1", "not loaded"}, {kPrivacy, level}},
                .cause = "The package is not installed, or the image leaves it out.",
                .fix = "Debian, Ubuntu: apt-get install libipsec-mb1\n"
                       "RHEL: dnf install intel-ipsec-mb",
                .gain = "Sealing takes less than half of the processor time."});
}

void checkCiphers(const Node& node, const std::string& level, Findings& findings) {
  const Live& live = node.live;
  if (!live.aes_gcm || !live.chacha || !live.aes_instructions || !(live.ipsec_mb || live.one_file))
    return findings.add({.severity = Severity::kInfo,
                         .code = "privacy.unknown",
                         .what = "Could not look at the ciphers of this node.",
                         .cause = "The folder of files holds no result of their trial.",
                         .fix = "On the node: viaduct doctor --only privacy"});
  if (!live.aes_gcm->ok || !live.chacha->ok)
    addNoCipher(*live.aes_gcm, *live.chacha, level == "off", findings);
  else
    findings.fine("libcrypto has AES-256-GCM and ChaCha20-Poly1305.");
  if (!live.aes_instructions->ok) return addNoInstructions(level, findings);
  if (!live.ipsec_mb) return;  // unknown: another finding, about the libraries, has the reason
  if (live.ipsec_mb->ok) return findings.fine("libipsec-mb seals data.");
  // The library is only for x86-64.
  if (live.machine == "x86_64") addNoFastLibrary(level, findings);
}

// No finding contains the text of the secret.
void checkSecret(const Node& node, Findings& findings) {
  const std::string* const secret = node.variable(kSecret);
  if (secret == nullptr) return;
  if (!base::isGuessable(*secret)) return findings.fine("VIADUCT_SECRET is hard to guess.");
  findings.add({.severity = Severity::kWarning,
                .code = "privacy.weak-secret",
                .what = "VIADUCT_SECRET is short enough to be guessed.",
                .evidence = {{kSecret, "fewer than about 80 bits, if its characters are random"}},
                .cause = "A person chose it. An attacker who makes a member dial it can test "
                         "guesses offline.",
                .fix = "openssl rand -hex 16\nGive the same text to all members of the group.",
                .gain = "Only members of the group are admitted."});
}

}  // namespace

void checkPrivacy(const Node& node, Findings& findings) {
  const std::string level = levelOf(node);
  checkLevel(level, findings);
  checkCiphers(node, level, findings);
  checkSecret(node, findings);
}

}  // namespace viaduct::diag
