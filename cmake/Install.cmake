# Installs headers, library and program, and the files with which find_package and pkg-config link
# them. Each component becomes one Debian package: Packages.cmake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY include/viaduct DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
install(DIRECTORY deploy DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS
  COMPONENT program)
if(TARGET viaduct_cli)
  # The program finds a shared library relative to its own place, so that an installed tree can be
  # moved.
  if(BUILD_SHARED_LIBS)
    file(RELATIVE_PATH to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(viaduct_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  endif()
  install(TARGETS viaduct_cli COMPONENT program)
  # Under this second name the program has nixlbench's flags and defaults: docs/bench.md.
  install(CODE "set(link \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/nixlbench\")
    file(CREATE_LINK viaduct \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${link}\")" COMPONENT program)
endif()

# Programs find NIXL's C library by `viaduct exec --nixl`. The library has its own folder, so that
# LD_LIBRARY_PATH brings no other library.
if(TARGET viaduct_nixl_capi)
  install(TARGETS viaduct_nixl_capi DESTINATION ${CMAKE_INSTALL_LIBDIR}/viaduct COMPONENT nixl)
  install(FILES src/nixl/c/nixl_capi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/viaduct COMPONENT nixl)
endif()

# Manual pages and completions. Debian's packages contain compressed manual pages.
if(TARGET viaduct_cli)
  get_target_property(pages viaduct_cli VIADUCT_PAGES)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  foreach(row bash-completion/completions/viaduct,bash bash-completion/completions/nixlbench,bash
          zsh/site-functions/_viaduct,zsh fish/vendor_completions.d/viaduct.fish,fish
          fish/vendor_completions.d/nixlbench.fish,fish)
    string(REGEX MATCH "^(.*)/([^/]*),(.*)$" row ${row})
    install(FILES ${pages}/viaduct.${CMAKE_MATCH_3} DESTINATION ${CMAKE_INSTALL_DATADIR}/${CMAKE_MATCH_1}
      RENAME ${CMAKE_MATCH_2} COMPONENT program)
  endforeach()
endif()

# Programs that link the static library also link its dependencies. A shared library names its
# dependencies itself.
get_property(libs GLOBAL PROPERTY VIADUCT_LIBS_viaduct)
get_property(linked GLOBAL PROPERTY VIADUCT_LINKED)
set(static_dependencies "")
set(static_requires "")
foreach(lib IN LISTS libs)
  if(NOT lib IN_LIST linked)
    message(FATAL_ERROR "A layer links ${lib} and does not call viaduct_link_dependency(${lib} ...)")
  endif()
endforeach()
foreach(lib IN LISTS linked)
  string(REGEX REPLACE "::.*" "" package ${lib})
  string(APPEND static_dependencies "find_dependency(${package})\n")
  get_property(pkgconfig GLOBAL PROPERTY VIADUCT_PKGCONFIG_${lib})
  list(APPEND static_requires ${pkgconfig})
endforeach()
list(JOIN static_requires ", " static_requires)

# viaduct_install_library(<target> <folder> [<more arguments of install(): COMPONENT ...>]):
# installs the library into that folder of the prefix, and the files for find_package and pkg-config
# below it.
function(viaduct_install_library target folder)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    set(viaduct_dependencies ${static_dependencies})
    set(pc_requires ${static_requires})
    set(pc_libs "-lstdc++ -lm ")  # for the linkers of C programs
  endif()
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${target}-package)
  set(package_dir ${folder}/cmake/viaduct)
  install(EXPORT ${target}Targets FILE viaductTargets.cmake NAMESPACE viaduct:: DESTINATION ${package_dir} ${ARGN})
  configure_package_config_file(cmake/viaductConfig.cmake.in ${made}/viaductConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${made}/viaductConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${made}/viaductConfig.cmake ${made}/viaductConfigVersion.cmake
    DESTINATION ${package_dir} ${ARGN})
  # The file finds the prefix relative to its own place, so that an installed tree can be moved.
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE full)
  file(RELATIVE_PATH pc_up ${full}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  set(pc_folder ${folder})
  configure_file(cmake/viaduct.pc.in ${made}/viaduct.pc @ONLY)
  install(FILES ${made}/viaduct.pc DESTINATION ${folder}/pkgconfig ${ARGN})
endfunction()

install(TARGETS viaduct EXPORT viaductTargets)
# Strips the archive here, because `cmake --install --strip` does not, and debug information is most
# of it.
if(NOT BUILD_SHARED_LIBS)
  install(CODE "if(CMAKE_INSTALL_DO_STRIP)
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:viaduct>\"
      COMMAND_ERROR_IS_FATAL ANY)
  endif()")
endif()
viaduct_install_library(viaduct ${CMAKE_INSTALL_LIBDIR})
