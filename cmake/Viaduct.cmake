# One function for each kind of target. All objects of the library are compiled with
# `viaduct_options`.

add_library(viaduct_options INTERFACE)
# clang's -Wconversion includes changes of sign and g++'s does not, so clang gets g++'s meaning. The
# stable algorithms of libstdc++ 12 call a deprecated function of its own, of which only clang warns.
target_compile_options(viaduct_options INTERFACE -Wall -Wextra -Wshadow -Wconversion
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-sign-conversion$<SEMICOLON>-Wno-deprecated-declarations>)
if(VIADUCT_WERROR)
  target_compile_options(viaduct_options INTERFACE -Werror)
endif()
# A batch of sources needs more memory than g++ uses by default before it collects garbage.
if(VIADUCT_MERGE)
  target_compile_options(viaduct_options INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=500000>)
endif()

# With VIADUCT_MERGE the compiler reads about `most` sources of one folder as one, because headers and
# templates take most of its time. Two such sources cannot have helpers with the same name. The name of
# a source decides its batch. A new source therefore joins one batch and leaves all others as they are.
# The batches name their sources by relative paths, unlike CMake's own unity builds, so that the compiler
# cache finds them from another clone. Sources with options of their own stay alone.
function(viaduct_merge_sources target most)
  if(VIADUCT_MERGE)
    # At the end of the folder, when the properties of all sources are known.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL viaduct_merge_now ${target} ${most})")
  endif()
endfunction()
function(viaduct_merge_now target most)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR last "(${count} - 1) / ${most}")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_merged)
  foreach(source IN LISTS sources)
    set(alone FALSE)
    foreach(property SKIP_UNITY_BUILD_INCLUSION COMPILE_DEFINITIONS COMPILE_OPTIONS)
      get_source_file_property(value ${source} ${property})
      if(value)
        set(alone TRUE)
      endif()
    endforeach()
    if(alone OR NOT source MATCHES "\\.cc$")
      continue()
    endif()
    cmake_path(GET source FILENAME name)
    set(best "")
    foreach(batch RANGE ${last})
      string(MD5 draw "${name} ${batch}")
      if(draw STRGREATER best)
        set(best ${draw})
        set(group ${batch})
      endif()
    endforeach()
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${folder})
    string(APPEND text_${group} "#include \"${path}\"\n")
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  foreach(batch RANGE ${last})
    if(text_${batch})
      file(CONFIGURE OUTPUT ${folder}/${batch}.cc CONTENT "${text_${batch}}" @ONLY)
      target_sources(${target} PRIVATE ${folder}/${batch}.cc)
    endif()
  endforeach()
endfunction()

# viaduct_precompile(<name> LIBS ... OPTIONS ... HEADERS ...): with VIADUCT_PCH the headers are
# compiled once, for all targets that call viaduct_use_precompiled(<target> <name>). These targets
# need the same options and the same CMAKE_POSITION_INDEPENDENT_CODE.
function(viaduct_precompile name)
  cmake_parse_arguments(arg "" "" "LIBS;OPTIONS;HEADERS" ${ARGN})
  if(VIADUCT_PCH)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cc CONTENT "")
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${name}.cc)
    target_link_libraries(${name} PRIVATE viaduct_options ${arg_LIBS})
    target_compile_options(${name} PRIVATE ${arg_OPTIONS})
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  endif()
endfunction()
function(viaduct_use_precompiled target name)
  if(VIADUCT_PCH)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# viaduct_link_dependency(<package>::<part> <pkg-config's name>): finds a library that programs link
# beside the installed static libviaduct. An empty name means that pkg-config does not know the
# library, and that viaduct.pc.in has the linker flag.
function(viaduct_link_dependency target pkgconfig)
  string(REGEX REPLACE "::.*" "" package ${target})
  find_package(${package} REQUIRED)
  set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
  set_property(GLOBAL APPEND PROPERTY VIADUCT_LINKED ${target})
  set_property(GLOBAL PROPERTY VIADUCT_PKGCONFIG_${target} "${pkgconfig}")
endfunction()

# viaduct_loaded_package(<dependency>): the Debian package of a library that is loaded at run time, as the field
# Recommends names it. The library's user reports an error if the package is missing.
function(viaduct_loaded_package dependency)
  set_property(GLOBAL APPEND PROPERTY VIADUCT_LOADED_PACKAGES ${dependency})
endfunction()

# viaduct_optimise_less(<target>): for code that no user waits for. The target compiles in three
# quarters of the time. At -O1 g++ wrongly warns of values in std::optional. From version 13 on it
# accepts there no header that was precompiled at -O2.
function(viaduct_optimise_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo,Release>:-O1>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# viaduct_layer(<name> SOURCES ... [TESTS ...] [LIBS ...]): compiles one folder of src/ to objects
# of the library that `viaduct_part` names. Its unit tests become the test program <name>_test.
function(viaduct_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;TESTS;LIBS" ${ARGN})
  string(REPLACE "/" "_" id ${name})
  add_library(viaduct_${id} OBJECT ${arg_SOURCES})
  target_include_directories(viaduct_${id} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(viaduct_${id} PUBLIC fmt::fmt Threads::Threads ${arg_LIBS}
                                      PRIVATE viaduct_options)
  viaduct_merge_sources(viaduct_${id} 12)
  viaduct_use_precompiled(viaduct_${id} viaduct_library_headers)
  set_property(GLOBAL APPEND PROPERTY VIADUCT_LAYERS_${viaduct_part} viaduct_${id})
  set_property(GLOBAL APPEND PROPERTY VIADUCT_LIBS_${viaduct_part} ${arg_LIBS})
  if(arg_TESTS AND VIADUCT_TESTS)
    viaduct_tested_by(${id}_test ${arg_SOURCES})
    list(TRANSFORM arg_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(GLOBAL APPEND PROPERTY VIADUCT_UNIT_TESTS ${id})
    set_property(GLOBAL PROPERTY VIADUCT_UNIT_TESTS_${id} ${arg_TESTS})
    set_property(GLOBAL PROPERTY VIADUCT_UNIT_TESTS_LIBS_${id} ${viaduct_part} ${arg_LIBS})
  endif()
endfunction()

# viaduct_backend(<name> [LOADS_LIBRARY] SOURCES ... [TESTS ...] [LIBS ...]): declares the backend
# of a folder; the folder's CMakeLists.txt needs only this call. Its facts.h has `constexpr
# BackendFacts viaduct::<name>::kFacts`. The backend defines `Result<std::unique_ptr<core::Backend>>
# viaduct::<name>::open(const core::BackendContext&)`, and with LOADS_LIBRARY also `std::string
# viaduct::<name>::libraryVersion()`.
function(viaduct_backend name)
  cmake_parse_arguments(arg "LOADS_LIBRARY" "" "" ${ARGN})
  viaduct_layer(backends/${name} ${arg_UNPARSED_ARGUMENTS})
  set_property(GLOBAL APPEND PROPERTY VIADUCT_BACKENDS ${name})
  set_property(GLOBAL PROPERTY VIADUCT_BACKEND_LOADS_${name} ${arg_LOADS_LIBRARY})
  set_property(GLOBAL APPEND PROPERTY VIADUCT_BACKEND_FACTS ${name})
  set_property(GLOBAL PROPERTY VIADUCT_BACKEND_FOLDER_${name} ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# viaduct_backend_absent(<name> <why>): replaces viaduct_backend() if the machine lacks something to
# build the backend. The backend's facts stay, because results of other builds name the backend.
function(viaduct_backend_absent name why)
  message(STATUS "${name}: left out, ${why}")
  set_property(GLOBAL APPEND PROPERTY VIADUCT_BACKENDS_ABSENT "    AbsentBackend{\"${name}\", \"${why}\"},\n")
  set_property(GLOBAL APPEND PROPERTY VIADUCT_BACKEND_FACTS ${name})
  set_property(GLOBAL PROPERTY VIADUCT_BACKEND_FOLDER_${name} ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# Writes the lists of built-in and of absent backends, and the facts of all, from the declarations
# of their folders.
function(viaduct_write_catalogue out)
  get_property(names GLOBAL PROPERTY VIADUCT_BACKENDS)
  list(LENGTH names count)
  get_property(absent GLOBAL PROPERTY VIADUCT_BACKENDS_ABSENT)
  list(LENGTH absent absent_count)
  list(JOIN absent "" absent)
  get_property(with_facts GLOBAL PROPERTY VIADUCT_BACKEND_FACTS)
  list(SORT with_facts)
  list(LENGTH with_facts facts_count)
  set(includes "")
  set(facts "")
  foreach(n IN LISTS with_facts)
    get_property(folder GLOBAL PROPERTY VIADUCT_BACKEND_FOLDER_${n})
    string(APPEND includes "#include \"${folder}/facts.h\"\n")
    string(APPEND facts "    ${n}::kFacts,\n")
    string(APPEND checks "static_assert(${n}::kFacts.name == \"${n}\", \"the name is that of the folder\");\n")
  endforeach()
  set(decls "")
  set(rows "")
  foreach(n IN LISTS names)
    get_property(loads GLOBAL PROPERTY VIADUCT_BACKEND_LOADS_${n})
    set(library nullptr)
    if(loads)
      string(APPEND decls "namespace ${n} {\nstd::string libraryVersion();\n}\n")
      set(library "&${n}::libraryVersion")
    endif()
    string(APPEND decls "namespace ${n} {\nResult<std::unique_ptr<core::Backend>> open(const core::BackendContext&);\n}\n")
    string(APPEND rows "    BackendEntry{\"${n}\", &${n}::open, ${library}, &${n}::kFacts},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "// Generated from src/backends/*/CMakeLists.txt.
#include <array>

#include \"core/backend.h\"
${includes}namespace viaduct {
${checks}${decls}namespace {
constexpr std::array<BackendFacts, ${facts_count}> kBackendFacts{{
${facts}}};
}  // namespace
std::span<const BackendFacts> backendFacts() { return kBackendFacts; }
namespace core {
namespace {
constexpr std::array<BackendEntry, ${count}> kBackends{{
${rows}}};
constexpr std::array<AbsentBackend, ${absent_count}> kAbsent{{
${absent}}};
}  // namespace
std::span<const BackendEntry> backendCatalogue() { return kBackends; }
std::span<const AbsentBackend> absentBackends() { return kAbsent; }
}  // namespace core
}  // namespace viaduct
")
endfunction()

# viaduct_place(<name> [PLAIN] SCHEMES ... SOURCES ... [TESTS ...] [LIBS ...]): declares the meeting place of a
# folder src/meet/<name>; the folder's CMakeLists.txt needs only this call. An address that begins with one of the
# schemes and a colon leads to this place. With PLAIN, an address without a scheme leads to this place too. The
# place defines `Result<std::unique_ptr<MeetingPlace>> viaduct::meet::<name>::open(const PlaceOptions&)`.
function(viaduct_place name)
  cmake_parse_arguments(arg "PLAIN" "" "SCHEMES;SOURCES;TESTS;LIBS" ${ARGN})
  viaduct_layer(meet/${name} SOURCES ${arg_SOURCES} TESTS ${arg_TESTS} LIBS ${arg_LIBS})
  set_property(GLOBAL APPEND PROPERTY VIADUCT_PLACES ${name})
  set_property(GLOBAL PROPERTY VIADUCT_PLACE_SCHEMES_${name} ${arg_SCHEMES})
  set_property(GLOBAL PROPERTY VIADUCT_PLACE_PLAIN_${name} ${arg_PLAIN})
endfunction()

# Writes the list of meeting places from the declarations of their folders.
function(viaduct_write_places out)
  get_property(names GLOBAL PROPERTY VIADUCT_PLACES)
  list(LENGTH names count)
  set(decls "")
  set(rows "")
  foreach(n IN LISTS names)
    get_property(schemes GLOBAL PROPERTY VIADUCT_PLACE_SCHEMES_${n})
    get_property(plain GLOBAL PROPERTY VIADUCT_PLACE_PLAIN_${n})
    string(TOLOWER ${plain} plain)
    list(JOIN schemes "\"), std::string_view(\"" schemes)
    string(APPEND decls "namespace ${n} {\nResult<std::unique_ptr<MeetingPlace>> open(const PlaceOptions&);\n")
    string(APPEND decls "constexpr std::array kSchemes{std::string_view(\"${schemes}\")};\n}\n")
    string(APPEND rows "    PlaceEntry{\"${n}\", ${n}::kSchemes, ${plain}, &${n}::open},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "// Generated from src/meet/*/CMakeLists.txt.
#include <array>

#include \"meet/place.h\"

namespace viaduct::meet {
${decls}namespace {
constexpr std::array<PlaceEntry, ${count}> kPlaces{{
${rows}}};
}  // namespace
std::span<const PlaceEntry> placeCatalogue() { return kPlaces; }
}  // namespace viaduct::meet
")
endfunction()

# The settings of test programs, and of the libraries that they share.
function(viaduct_test_code target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE viaduct_options viaduct many_bytes fmt::fmt GTest::gtest)
  target_compile_options(${target} PRIVATE ${VIADUCT_TEST_OPTIONS})
  viaduct_merge_sources(${target} 8)
  viaduct_use_precompiled(${target} viaduct_test_headers)
endfunction()

# viaduct_test_paths(<target> <name> <path> ...): defines paths of the build for support/paths.h. They are in a
# source of their own, because a path on the command line would make another clone compile everything again.
function(viaduct_test_paths target)
  while(ARGN)
    list(POP_FRONT ARGN name path)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_${name}.cc)
    file(GENERATE OUTPUT ${source} CONTENT "namespace viaduct::testing {
extern const char* const ${name};
const char* const ${name} = \"${path}\";
}  // namespace viaduct::testing
")
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  endwhile()
endfunction()

# viaduct_test(<name> SOURCES ... [LIBS ...] [options of viaduct_ctest]): a GoogleTest program over
# the library; with viaduct_bench in LIBS also over the benchmark's parts.
function(viaduct_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;LABELS;TIMEOUT;FILTER;LOCK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  viaduct_test_code(${name})
  viaduct_tested_by(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest_main)
  viaduct_ctest(${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} FILTER ${arg_FILTER}
    LOCK ${arg_LOCK})
endfunction()

# Adds rows to the table that `./dev quick` reads: a source, and the program that tests it.
function(viaduct_tested_by program)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_property(GLOBAL APPEND_STRING PROPERTY VIADUCT_TESTED_BY "${source} ${program}\n")
  endforeach()
endfunction()

# viaduct_ctest(<name> [LABELS label] [TIMEOUT seconds] [FILTER pattern] [LOCK word]): makes ctest
# tests of the program's tests, or of the tests that match the pattern. Tests with the same lock run
# one at a time; tests that start many processes need a lock. All GPU tests of a program are one
# ctest test, which is skipped without a GPU. The timeout ends only hanging tests; slow tests stay
# far below it.
function(viaduct_ctest name)
  cmake_parse_arguments(arg "" "TIMEOUT;FILTER;LABELS;LOCK" "" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  # Without this setting, a libfabric endpoint over TCP takes 70 MB: docs/gotchas/libfabric.md.
  set(properties TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"  # one label: gtest_discover_tests takes no lists
    ENVIRONMENT FI_OFI_RXM_USE_SRX=0)
  # Reserves processors, because an etcd cluster that waits for processor and disk drops its
  # members.
  if(arg_LABELS STREQUAL etcd)
    list(APPEND properties PROCESSORS 2)
  endif()
  if(arg_LOCK)
    list(APPEND properties RESOURCE_LOCK ${arg_LOCK})
  endif()
  if(NOT arg_FILTER)
    set(arg_FILTER "*")
  endif()
  if(arg_LABELS STREQUAL gpu)
    add_test(NAME ${name}.OnAGpu COMMAND ${name} --gtest_filter=${arg_FILTER})
    set_tests_properties(${name}.OnAGpu PROPERTIES ${properties}
      RESOURCE_LOCK gpu SKIP_REGULAR_EXPRESSION "no /dev/nvidia0")
    return()
  endif()
  gtest_discover_tests(${name} TEST_FILTER ${arg_FILTER} PROPERTIES ${properties} DISCOVERY_TIMEOUT 60)
endfunction()

# The unit tests beside their sources, one program per layer. The target unit_tests builds all of
# them.
function(viaduct_unit_tests)
  get_property(names GLOBAL PROPERTY VIADUCT_UNIT_TESTS)
  foreach(id IN LISTS names)
    get_property(tests GLOBAL PROPERTY VIADUCT_UNIT_TESTS_${id})
    get_property(libs GLOBAL PROPERTY VIADUCT_UNIT_TESTS_LIBS_${id})
    viaduct_test(${id}_test SOURCES ${tests} LIBS ${libs} LABELS unit)
  endforeach()
  list(TRANSFORM names APPEND _test)
  add_custom_target(unit_tests DEPENDS ${names})
endfunction()
