# viaduct-doctor: the doctor, env and exec as one static file (docs/doctor.md#one-file-for-any-pod). It has
# the library inside, and loads no library when it runs.
find_package(fmt REQUIRED)
if(NOT fmt_VERSION MATCHES "^9\\.")
  message(STATUS "viaduct-doctor: left out, fmt_code.cc is for fmt 9, and this is fmt ${fmt_VERSION}")
  return()
endif()
foreach(name archive acl z crypto)
  find_library(VIADUCT_STATIC_${name} lib${name}.a)
  if(NOT VIADUCT_STATIC_${name})
    message(STATUS "viaduct-doctor: left out, there is no lib${name}.a")
    return()
  endif()
  list(APPEND static_libraries ${VIADUCT_STATIC_${name}})
endforeach()
add_executable(viaduct_doctor doctor_main.cc fmt_code.cc)
set_target_properties(viaduct_doctor PROPERTIES OUTPUT_NAME viaduct-doctor)
target_include_directories(viaduct_doctor PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR}/apps)
# Links the archive files, because the CMake targets would also link the shared libraries that they
# name.
set(archives viaduct_app viaduct_bench viaduct)
add_dependencies(viaduct_doctor ${archives})
list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>")
target_link_libraries(viaduct_doctor PRIVATE viaduct_options ${archives} ${static_libraries})
# libarchive.a needs a dozen libraries for formats that snapshots do not have. ld.bfd drops these parts
# with the sections that nothing uses, and does not ask for their libraries.
target_link_options(viaduct_doctor PRIVATE -static -s -fuse-ld=bfd -Wl,--gc-sections)
