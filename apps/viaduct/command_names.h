// The names that commands have in this program. Threads: the main one.
#pragma once

#include <string>

namespace viaduct::app {

// Makes this program call its commands as `viaduct-doctor` does. Call this before any command is
// made.
void becomeDoctorFile();
// Returns the text with the names of commands as a user of this program types them. In
// `viaduct-doctor`, "viaduct doctor --list" becomes "viaduct-doctor --list", and "viaduct env"
// becomes "viaduct-doctor env".
std::string asTyped(std::string text);

}  // namespace viaduct::app
