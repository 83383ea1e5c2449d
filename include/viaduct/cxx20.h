// Every public header includes this one first. Threads: nothing to call.
#pragma once

#if __cplusplus < 202002L
#error "Viaduct's headers need C++20: compile with -std=c++20, or with CMAKE_CXX_STANDARD 20"
#endif
