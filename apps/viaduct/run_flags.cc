#include "viaduct/run_flags.h"

#include <fmt/format.h>

#include <array>

#include "viaduct/env.h"

namespace viaduct::app {
namespace {

using Run = RunOptions;
using measure::Spec;
// Meeting places and credentials are not recorded, because people pass result files around.
constexpr std::string_view kUnrecorded =
    "secret meet etcd_endpoints etcd_user etcd_password etcd_ca etcd_cert etcd_key asio_address "
    "asio_port obj_access_key obj_secret_key obj_session_token obj_ca_bundle obj_endpoint_override "
    "object_endpoint";

constexpr std::array kRunFlags{
    RunFlag{"backend", "NAME,...", "VIADUCT_BACKENDS, or local,tcp; nixlbench: UCX",
            "backends to measure, or one backend of storage; a transfer over any other backend is "
            "an error",
            set<intoWords, &Run::backends>},
    RunFlag{"op", "write|read|push|pull", "write",
            "direction of the transfers, as initiators see it", oneOf<kOps, &Run::op>},
    RunFlag{"memory", "allocate|malloc", "allocate",
            "allocate: memory from the agent, which peers on this host can map; malloc: ordinary "
            "memory",
            oneOf<measure::kMemoryChoices, &Run::spec, &Spec::memory>},
    RunFlag{"initiator_seg_type", "DRAM|VRAM", "DRAM",
            "memory of the initiators: host memory, or that of GPUs (device i is GPU i)",
            oneOf<kSegments, &Run::initiator_seg_type>},
    RunFlag{"target_seg_type", "DRAM|VRAM", "DRAM",
            "memory of the targets: host memory, or that of GPUs (device i is GPU i)",
            oneOf<kSegments, &Run::target_seg_type>},
    RunFlag{"use_hugepages", "", "false", "use 2 MiB pages",
            set<intoYesNo, &Run::spec, &Spec::huge_pages>},
    RunFlag{"total_buffer_size", "SIZE", "as much as the rows need; nixlbench: 8 GiB",
            "memory per process, divided among its devices and their streams",
            set<intoSize, &Run::spec, &Spec::buffer_bytes>},
    RunFlag{"cold", "", "false",
            "each transfer uses other blocks, from four times the CPU caches or from "
            "total_buffer_size; otherwise each stream reuses one set of blocks",
            set<intoYesNo, &Run::cold>},
    RunFlag{"working_set", "SIZE", "", "memory that the transfers of a stream cycle through",
            set<intoSize, &Run::working_set>},
    RunFlag{"device_list", "NAME,...", "all",
            "interfaces, source addresses or RDMA devices to use; all lets the backend choose",
            set<intoWords, &Run::device_list>},
    RunFlag{"seed", "N", "1", "random seed for contents, block order and Poisson arrivals",
            count<0, &Run::spec, &Spec::seed>},

    RunFlag{"mode", "SG|MG", "SG",
            "SG: one process per device; MG: one process for all devices of a side",
            oneOf<measure::kModes, &Run::spec, &Spec::layout, &measure::Layout::mode>},
    RunFlag{"num_threads", "N", "1", "threads per pair, each with its own transfers",
            count<1, &Run::spec, &Spec::threads>},
    RunFlag{"pipeline_depth", "N", "1", "transfers in flight per thread",
            count<1, &Run::spec, &Spec::depth>},
    RunFlag{"bidirectional", "", "false",
            "move as much data in the other direction at the same time",
            set<intoYesNo, &Run::spec, &Spec::bidirectional>},
    RunFlag{"recreate_xfer", "", "false", "plan each transfer again",
            set<intoYesNo, &Run::spec, &Spec::recreate>},

    RunFlag{"iterations", "N", "as many as fit in 0.4 s; nixlbench: num_iter",
            "timed transfers per pair", count<1, &Run::iterations>},
    RunFlag{"duration", "TIME", "", "time each row for this long: 2s, 500ms, 60 (seconds)",
            set<intoSomeTime, &Run::spec, &Spec::duration>},
    RunFlag{"warmup", "TIME", "50ms; nixlbench: warmup_iter", "warm-up time before each row",
            set<intoTime, &Run::spec, &Spec::warmup>},
    RunFlag{"repeat", "N", "1", "time each row N times", count<1, &Run::spec, &Spec::repeat>},

    RunFlag{"verify", "full|sampled|off", "sampled",
            "full: check every byte of every transfer; sampled: check some of the timed transfers",
            oneOf<measure::kVerifieds, &Run::spec, &Spec::verify>},
    RunFlag{"fresh", "", "false",
            "write all bytes of each transfer before it, to catch a path that sends only changes",
            set<intoYesNo, &Run::spec, &Spec::fresh>},
    RunFlag{"require", "PATH,...", "",
            "path that every transfer must take: rdma, same-host, not-tcp, no-staging, gpu-direct, "
            "packed, encrypted, backend:NAME, proven",
            set<intoRequire, &Run::spec, &Spec::require>},
    RunFlag{
        "link_rate", "DEVICE=RATE,...", "as the device reports",
        "line rate in bits, if the system reports none or a wrong one: eth0=500Mbit, rail0=100G",
        set<intoLinkRates, &Run::spec, &Spec::link_rates>},

    RunFlag{"meet", "PLACE", "",
            "meeting place of the workers: HOST:PORT, where rank 0 listens, or http://etcd:2379",
            set<intoText, &Run::meeting, &MeetingOptions::where>},
    RunFlag{"secret", "WORD", "VIADUCT_SECRET",
            "shared secret of all workers, needed beyond loopback; ps shows the flag, but not "
            "VIADUCT_SECRET",
            set<intoText, &Run::meeting, &MeetingOptions::secret>},
    RunFlag{"rank", "N", "from the environment, else the next free rank",
            "rank of this worker; initiators have the lowest ranks",
            count<0, &Run::meeting, &MeetingOptions::rank>},
    RunFlag{"benchmark_group", "NAME", "default",
            "name of this run at the meeting place; runs there need different names",
            set<intoText, &Run::meeting, &MeetingOptions::group>},
    RunFlag{"meet_timeout", "TIME", "3m", "time for all workers to join",
            set<intoTime, &Run::meeting, &MeetingOptions::timeout>},

    RunFlag{"against", "'SETTINGS'", "",
            "compare with the same run under these additional flags and VIADUCT_* assignments",
            set<intoText, &Run::against, &AgainstOptions::settings>},
    RunFlag{"rounds", "N", "5", "runs of each side, in turns; they share the time of a row",
            count<4, &Run::against, &AgainstOptions::rounds>},
    RunFlag{"fail_if_slower", "N%", "",
            "exit with 1 if the other side is slower by more than N%, at 95 % confidence",
            set<intoPercent, &Run::against, &AgainstOptions::slower>},
    RunFlag{"least_effect", "N%", "1%", "smallest effect to call faster or slower",
            set<intoPercent, &Run::against, &AgainstOptions::least_effect>},
    RunFlag{"junit", "FILE", "", "also write each compared row as a test of a JUnit file",
            set<intoFile, &Run::against, &AgainstOptions::junit>},

    RunFlag{"interval", "SECONDS", "", "print the rate of each interval of a row, as it runs",
            set<intoInterval, &Run::spec, &Spec::interval>},
    RunFlag{"json", "FILE", "", "also write all results to this file",
            set<intoFile, &Run::out, &OutputOptions::json>},
    RunFlag{"explain", "", "false",
            "measure nothing; list the backends, the chosen one and the reasons",
            set<intoYesNo, &Run::out, &OutputOptions::explain>},
    RunFlag{"config_file", "FILE", "", "TOML file with flag = value lines; the command line wins",
            [](std::string_view, Run&) { return Status(Ok{}); }},
};

// Quotes a text for a shell if needed.
std::string quoted(const std::string& text) {
  constexpr auto kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/=+%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  return singleQuoted(text);
}

}  // namespace

std::span<const RunFlag> runFlags() { return kRunFlags; }

void addBlocks(FlagSheet& sheet, Run& options) {
  sheet.add("Data", runFlags(), options,
            {"backend", "op", "memory", "use_hugepages", "total_buffer_size", "cold", "working_set",
             "device_list", "seed"});
}
void addDuration(FlagSheet& sheet, Run& options) {
  sheet.add("Duration", runFlags(), options, {"iterations", "duration", "warmup", "repeat"});
}
void addChecks(FlagSheet& sheet, Run& options) {
  sheet.add("Checks", runFlags(), options, {"verify", "fresh", "require", "link_rate"});
}
void addMeeting(FlagSheet& sheet, Run& options) {
  sheet.add("Meeting place", runFlags(), options,
            {"meet", "secret", "rank", "benchmark_group", "meet_timeout"});
}
void addComparison(FlagSheet& sheet, Run& options) {
  sheet.add("Comparison", runFlags(), options,
            {"against", "rounds", "fail_if_slower", "least_effect", "junit"});
}
void addOutput(FlagSheet& sheet, Run& options, std::span<const RunFlag> form,
               std::initializer_list<std::string_view> names) {
  sheet.add("Output", form, options)
      .add("Output", runFlags(), options, names)
      .add("Output", runFlags(), options, {"config_file"})
      .addHelp("Output");
}

std::string commandText(std::string program, const GivenFlags& given) {
  const char between_words = program == "nixlbench" ? '_' : '-';
  for (const auto& [name, flag] : given) {
    if (isListed(name, kUnrecorded)) continue;
    if (flag.yes)
      program += " " + spelled((*flag.yes ? "" : "no") + name, between_words);
    else if (isArgument(name))
      program += " " + quoted(flag.text);
    else
      program += fmt::format(" {} {}", spelled(name, between_words), quoted(flag.text));
  }
  return program;
}

}  // namespace viaduct::app
