#include "viaduct/command_names.h"

#include <array>
#include <string_view>

namespace viaduct::app {
namespace {

bool is_doctor_file = false;

struct CommandName {
  std::string_view usual, in_doctor_file;
};
constexpr std::array kCommandNames{
    CommandName{"viaduct doctor", "viaduct-doctor"},
    CommandName{"viaduct env", "viaduct-doctor env"},
    CommandName{"viaduct exec", "viaduct-doctor exec"},
    CommandName{"viaduct version", "viaduct-doctor version"},
};

}  // namespace

void becomeDoctorFile() { is_doctor_file = true; }

std::string asTyped(std::string text) {
  if (!is_doctor_file) return text;
  for (const auto& [usual, here] : kCommandNames)
    for (auto at = text.find(usual); at != std::string::npos;
         at = text.find(usual, at + here.size()))
      text.replace(at, usual.size(), here);
  return text;
}

}  // namespace viaduct::app
