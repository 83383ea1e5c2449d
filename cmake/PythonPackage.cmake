# The Debian package python3-viaduct: the Python package for the distribution's interpreter, with
# the metadata that pip reads. Packages.cmake includes this file.
set(dist_packages lib/python3/dist-packages)
install(TARGETS viaduct_python LIBRARY DESTINATION ${dist_packages}/viaduct ${packaged} python)
install(DIRECTORY python/viaduct DESTINATION ${dist_packages} ${packaged} python
  FILES_MATCHING PATTERN *.py PATTERN *.pyi PATTERN py.typed PATTERN METADATA PATTERN __pycache__ EXCLUDE)
install(PROGRAMS cmake/debian/python/verify_nixl_setup DESTINATION bin ${packaged} python)
get_target_property(python viaduct_python VIADUCT_PYTHON_EXECUTABLE)
get_target_property(python_version viaduct_python VIADUCT_PYTHON_VERSION)
set(description ${CMAKE_CURRENT_BINARY_DIR}/debian/python)
file(REMOVE_RECURSE ${description})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${python} -B
  ${PROJECT_SOURCE_DIR}/python/build_backend/viaduct_build.py description --out ${description})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/python/build_backend/viaduct_build.py)
install(DIRECTORY ${description}/ DESTINATION ${dist_packages} ${packaged} python)

# The module works with this minor version of Python only.
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" python_version ${python_version})
math(EXPR next "${CMAKE_MATCH_2} + 1")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= ${python_version}), python3 (<< ${CMAKE_MATCH_1}.${next})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/python/postinst
  ${PROJECT_SOURCE_DIR}/cmake/debian/python/prerm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS ${loaded})
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
  "library that moves blocks of memory (module for Python 3)\nIt is made for systems that serve large language models: KV caches, weights, checkpoints.\nThis package has the Python package viaduct.")
