# Debian packages by cpack: docs/packages.md. Each is one component of the installation. Our program
# contains the library; other programs use the shared library.
if(BUILD_SHARED_LIBS OR NOT TARGET viaduct_cli)
  message(FATAL_ERROR "VIADUCT_PACKAGES needs BUILD_SHARED_LIBS=OFF and VIADUCT_PROGRAM=ON: the packages "
    "have both, the shared library and a program that has it inside")
endif()
set(VIADUCT_PACKAGE_MAINTAINER "Viaduct project <viaduct@packages.invalid>" CACHE STRING
  "Who answers for packages that are made here")

# `cmake --install` leaves out files that are installed with `packaged`. Only cpack takes them.
set(packaged EXCLUDE_FROM_ALL COMPONENT)
set(library_dir lib/${CMAKE_LIBRARY_ARCHITECTURE})
install(TARGETS viaduct_shared EXPORT viaduct_sharedTargets
  LIBRARY DESTINATION ${library_dir} COMPONENT library NAMELINK_COMPONENT development EXCLUDE_FROM_ALL)
viaduct_install_library(viaduct_shared ${library_dir} ${packaged} development)
install(DIRECTORY ${pages}/man1 DESTINATION share/man ${packaged} program)
install(CODE "file(GLOB manuals \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1/*.1\")
  execute_process(COMMAND gzip -9n \${manuals} COMMAND_ERROR_IS_FATAL ANY)" ${packaged} program)
set(packages program,viaduct library,libviaduct development,libviaduct-dev)
if(TARGET viaduct_python)
  list(APPEND packages python,python3-viaduct)
endif()
if(TARGET viaduct_nixl_capi)
  list(APPEND packages nixl_library,libviaduct-nixl)
  install(TARGETS viaduct_nixl_capi DESTINATION ${library_dir}/viaduct ${packaged} nixl_library)
  install(FILES src/nixl/c/nixl_capi.h DESTINATION include/viaduct ${packaged} nixl_library)
endif()
foreach(row IN LISTS packages)
  string(REGEX MATCH "^(.*),(.*)$" row ${row})
  install(FILES cmake/debian/copyright DESTINATION share/doc/${CMAKE_MATCH_2} ${packaged} ${CMAKE_MATCH_1})
  string(TOUPPER ${CMAKE_MATCH_1} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${CMAKE_MATCH_2})
  list(APPEND CPACK_COMPONENTS_ALL ${CMAKE_MATCH_1})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME viaduct)
set(CPACK_PACKAGE_CONTACT ${VIADUCT_PACKAGE_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/package)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/debian/FolderRights.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

get_property(loaded GLOBAL PROPERTY VIADUCT_LOADED_PACKAGES)
list(JOIN loaded ", " loaded)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS ${loaded})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "benchmark and diagnosis of memory transfers\nViaduct moves blocks of memory between processes and hosts, and measures how fast they move.\nThis package has the program: bench, p2p, suite, doctor and others.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS ${loaded})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
  "library that moves blocks of memory between processes and hosts\nIt is made for systems that serve large language models: KV caches, weights, checkpoints.\nThis package has the shared library.")
if(TARGET viaduct_python)
  include(PythonPackage)
endif()
set(CPACK_DEBIAN_NIXL_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_NIXL_LIBRARY_PACKAGE_RECOMMENDS ${loaded})
set(CPACK_DEBIAN_NIXL_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_NIXL_LIBRARY_DESCRIPTION
  "library that moves blocks of memory (C interface of NIXL)\nPrograms in Rust or C that call NIXL run over Viaduct with this library.\nThis package has libnixl_capi.so, which `viaduct exec --nixl` lets a program find, and its header.")
# Tells packages of programs that link the library which package and version they need.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/debian/shlibs
  CONTENT "libviaduct ${PROJECT_VERSION_MAJOR} libviaduct (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/debian/shlibs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libviaduct (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "library that moves blocks of memory (development files)\nThis package has the headers for C and C++, examples, and files for CMake and pkg-config.")
include(CPack)
