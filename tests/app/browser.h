// A page in headless Chromium. Threads: one at a time.
#pragma once

#include <string>
#include <utility>

namespace viaduct::testing {

// The path of Chromium. Empty: there is none on this machine.
std::string browser();

// Returns the document that the browser makes of the page, and the browser's messages. `folder`
// ends with a slash, and keeps the browser's profile. `size` is the window's size, such as
// "1280,900".
std::pair<std::string, std::string> load(const std::string& page, const std::string& size,
                                         const std::string& folder);

// A page with `page` in a frame of this width. The text in the frame may contain a script, which
// reports through `frameElement.dataset`.
std::string framed(const std::string& page, int width);

// Replaces the first `what` in the text, which must contain `what`.
std::string replaced(std::string text, const std::string& what, const std::string& by);

}  // namespace viaduct::testing
