# SPDX-License-Identifier: Apache-2.0
# packaging/install.cmake - what `cmake --install` puts where: the program, the libraries, their headers and
# headroom.pc, manual pages, completions, recipes and the licence. The pages are printed by the program.
include(GNUInstallDirs)
set(HR_PAGES ${CMAKE_BINARY_DIR}/pages)

# The shared library is compiled a second time, for any address. It has the functions of the public headers.
option(HR_SHARED "build the shared library" OFF)
set(INSTALLED headroom_library)
if(HR_SHARED)
  file(GLOB HEADERS CONFIGURE_DEPENDS include/headroom/*.h)
  set(NAMES "")
  foreach(header IN LISTS HEADERS)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(READ ${header} text)
    string(REGEX MATCHALL "hr_[a-z0-9_]+\\(" found "${text}")
    list(APPEND NAMES ${found})
  endforeach()
  list(REMOVE_DUPLICATES NAMES)
  list(SORT NAMES)
  list(TRANSFORM NAMES REPLACE "\\(" ";")
  string(REPLACE ";;" ";\n    " NAMES "${NAMES}")
  file(CONFIGURE OUTPUT headroom.map @ONLY CONTENT
    "HEADROOM_@PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ {\n  global:\n    @NAMES@\n  local: *;\n};\n")
  add_library(headroom_shared SHARED ${SOURCES})
  set_target_properties(headroom_shared PROPERTIES OUTPUT_NAME headroom VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${CMAKE_BINARY_DIR}/headroom.map)
  target_include_directories(headroom_shared PUBLIC include PRIVATE src)
  target_compile_options(headroom_shared PRIVATE -fno-semantic-interposition)
  target_link_options(headroom_shared PRIVATE LINKER:--version-script=${CMAKE_BINARY_DIR}/headroom.map LINKER:-z,defs)
  target_link_libraries(headroom_shared PRIVATE PkgConfig::LIBRARIES Threads::Threads m)
  list(APPEND INSTALLED headroom_shared)
endif()

add_custom_command(OUTPUT ${HR_PAGES}/man1/headroom.1
  COMMAND ${PROJECT_SOURCE_DIR}/packaging/pages $<TARGET_FILE:headroom> ${HR_PAGES}
  DEPENDS headroom packaging/pages VERBATIM)
add_custom_target(pages ALL DEPENDS ${HR_PAGES}/man1/headroom.1)

# Relative, so that it holds for any --prefix.
file(RELATIVE_PATH UP /usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig /usr)
string(REGEX REPLACE "/$" "" UP "${UP}")
file(CONFIGURE OUTPUT headroom.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@UP@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: headroom
Description: plans and trains language models within a memory budget
Version: @PROJECT_VERSION@
Libs: -L\${libdir} -lheadroom
Libs.private: -lpthread -lm
Requires.private: yaml-0.1 jansson libxxhash libutf8proc zlib libzstd libpcre2-8
Cflags: -I\${includedir}
")

install(TARGETS headroom ${INSTALLED})
install(DIRECTORY include/headroom TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/headroom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY ${HR_PAGES}/man1 TYPE MAN)
install(FILES ${HR_PAGES}/headroom.bash RENAME headroom DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# zsh of Debian looks into these two.
set(HR_ZSH site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(HR_ZSH vendor-completions)
endif()
install(FILES ${HR_PAGES}/_headroom DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${HR_ZSH})
install(FILES ${HR_PAGES}/headroom.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY presets DESTINATION ${CMAKE_INSTALL_DATADIR}/headroom FILES_MATCHING PATTERN "*.yaml")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
