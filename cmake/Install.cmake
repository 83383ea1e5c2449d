# Installs headers, library and program, and says to find_package and pkg-config what to link.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(viaduct PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
install(TARGETS viaduct EXPORT viaductTargets)
# `cmake --install --strip` leaves archives alone, and most of this one is debug information.
if(NOT BUILD_SHARED_LIBS)
  install(CODE "if(CMAKE_INSTALL_DO_STRIP)
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:viaduct>\"
      COMMAND_ERROR_IS_FATAL ANY)
  endif()")
endif()
install(DIRECTORY include/viaduct DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY deploy DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS)
if(TARGET viaduct_cli)
  # Where the library is shared the program finds it from where it lies itself, so that an installed
  # tree can be moved.
  if(BUILD_SHARED_LIBS)
    file(RELATIVE_PATH to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(viaduct_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  endif()
  install(TARGETS viaduct_cli)
  # Called by the other name it has the other's flags and defaults: docs/bench.md.
  install(CODE "set(link \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/nixlbench\")
    file(CREATE_LINK viaduct \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${link}\")")
endif()

# A static library leaves its own libraries to whoever links it; a shared one has them inside.
# Each is named `package::part`, after the package that find_dependency has to find.
get_property(libs GLOBAL PROPERTY VIADUCT_LIBS)
list(APPEND libs fmt::fmt Threads::Threads)
list(REMOVE_DUPLICATES libs)
set(pc_name_fmt::fmt fmt)
set(pc_name_OpenSSL::Crypto libcrypto)
set(viaduct_dependencies "")
set(pc_requires "")
foreach(lib IN LISTS libs)
  string(REGEX REPLACE "::.*" "" package ${lib})
  string(APPEND viaduct_dependencies "find_dependency(${package})\n")
  if(DEFINED pc_name_${lib})
    list(APPEND pc_requires ${pc_name_${lib}})
  elseif(NOT lib STREQUAL Threads::Threads)
    message(FATAL_ERROR "cmake/Install.cmake does not know ${lib}'s name in pkg-config")
  endif()
endforeach()
list(JOIN pc_requires ", " pc_requires)
if(BUILD_SHARED_LIBS)
  set(viaduct_dependencies "")
  set(pc_private .private)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/viaduct)
install(EXPORT viaductTargets NAMESPACE viaduct:: DESTINATION ${package_dir})
configure_package_config_file(cmake/viaductConfig.cmake.in viaductConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(viaductConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/viaductConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/viaductConfigVersion.cmake DESTINATION ${package_dir})

# The prefix is found from where the file lies, so that an installed tree can be moved.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_up ${pc_dir} ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/viaduct.pc.in viaduct.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/viaduct.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
