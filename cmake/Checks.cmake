# Checks of the build itself. Every build checks that includes obey the layers, and that each type
# name means one thing. The target check_headers compiles each header alone. Tests check that locks
# are held (with clang) and that links in documents exist.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(tools ${PROJECT_SOURCE_DIR}/tools)

set(patterns "")
foreach(top include src apps python examples)
  list(APPEND patterns ${PROJECT_SOURCE_DIR}/${top}/*.h ${PROJECT_SOURCE_DIR}/${top}/*.c ${PROJECT_SOURCE_DIR}/${top}/*.cc)
endforeach()
file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
add_custom_command(OUTPUT layers.checked
  COMMAND ${Python3_EXECUTABLE} ${tools}/check_layers.py ${PROJECT_SOURCE_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch layers.checked
  DEPENDS ${files} ${tools}/check_layers.py
  COMMENT "Checking that layers are kept" VERBATIM)
add_custom_target(check_layers ALL DEPENDS layers.checked)
add_custom_command(OUTPUT names.checked
  COMMAND ${Python3_EXECUTABLE} ${tools}/check_names.py ${PROJECT_SOURCE_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch names.checked
  DEPENDS ${files} ${tools}/check_names.py
  COMMENT "Checking that type names mean one thing" VERBATIM)
add_custom_target(check_names ALL DEPENDS names.checked)

# Compiles each header as the only line of a source file.
set(alone "")
foreach(file IN LISTS files)
  if(file MATCHES "/(include|src)/(.*)\\.h$")
    string(REPLACE "/" "_" id ${CMAKE_MATCH_2})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${id}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <${CMAKE_MATCH_2}.h>\n")
    list(APPEND alone ${source})
  endif()
endforeach()
get_property(libs GLOBAL PROPERTY VIADUCT_LIBS_viaduct)
get_property(bench_libs GLOBAL PROPERTY VIADUCT_LIBS_viaduct_bench)
add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${alone})
target_include_directories(check_headers PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(check_headers PRIVATE viaduct_options fmt::fmt Threads::Threads ${libs} ${bench_libs})

add_test(NAME Tools.TheChecksFindWhatTheyAreFor
  COMMAND ${Python3_EXECUTABLE} -B ${tools}/check_tools_test.py)
add_test(NAME Tools.WorkflowsCallDevAlone COMMAND ${Python3_EXECUTABLE} -B ${tools}/check_workflows_test.py)
set_tests_properties(Tools.WorkflowsCallDevAlone PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME Tools.PromisesOfReleasesAreKept COMMAND ${Python3_EXECUTABLE} -B ${tools}/check_stability.py)
add_test(NAME Tools.BrokenPromisesAreFound COMMAND ${Python3_EXECUTABLE} -B ${tools}/check_stability_test.py)
add_test(NAME Tools.AReleaseIsACommand COMMAND ${Python3_EXECUTABLE} -B ${tools}/release_test.py)
set_tests_properties(Tools.AReleaseIsACommand PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME Docs.LicencesAreThoseOfTheDependencies
  COMMAND ${Python3_EXECUTABLE} -B ${tools}/licences.py --check)
add_test(NAME Tools.LocksAreHeldWhereTheyAreNeeded COMMAND ${tools}/check_locks.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(Tools.LocksAreHeldWhereTheyAreNeeded PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME Docs.LinksLeadSomewhere
  COMMAND ${Python3_EXECUTABLE} -B ${tools}/check_docs.py ${PROJECT_SOURCE_DIR})
add_test(NAME Docs.SettingsAreThoseOfTheProgram
  COMMAND bash -c [["$0" settings --markdown | diff - "$1"]]
    $<TARGET_FILE:viaduct_cli> ${PROJECT_SOURCE_DIR}/docs/settings.md)
