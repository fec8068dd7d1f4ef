# The kit for tests of your own layers and methods: gradients by central differences, one unit of a method by hand, a whole
# exchange of made-up gradients. Installed.

set(wisp_test_kit_headers error_of.h gradcheck.h kernels_over.h leaves.h temp_dir.h tensors.h test_context.h test_replica.h
  unit_rig.h)

# wisp_test_kit(TARGET): lets a program of GoogleTest include "tests/support/gradcheck.h" and the other headers above.
function(wisp_test_kit target)
  find_package(GTest REQUIRED)
  wisp_kernels(${target} ${WISP_TEST_KIT_DIR}/gradcheck.cpp)
  target_sources(${target} PRIVATE ${WISP_TEST_KIT_DIR}/test_replica.cpp)
  target_link_libraries(${target} PRIVATE wisp::layers wisp::distributed GTest::gtest_main)
endfunction()
