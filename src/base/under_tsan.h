// Defines VIADUCT_TSAN in a build for the thread sanitizer.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define VIADUCT_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VIADUCT_TSAN
#endif
#endif
