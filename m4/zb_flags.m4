# ZB_TRY_CFLAG(VAR, FLAG): add FLAG to VAR if the compiler takes it.
AC_DEFUN([ZB_TRY_CFLAG], [
  AS_VAR_PUSHDEF([zb_cv], [zb_cv_cflag_$2])
  AC_CACHE_CHECK([whether $CC accepts $2], [zb_cv], [
    zb_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $2"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <string.h>
      int zb_probe(const char *s); int zb_probe(const char *s) { char b[64]; strncpy(b, s, 63); b[63] = 0; return b[0]; }]],
      [[return zb_probe("x");]])], [AS_VAR_SET([zb_cv], [yes])], [AS_VAR_SET([zb_cv], [no])])
    CFLAGS=$zb_saved_CFLAGS])
  AS_VAR_IF([zb_cv], [yes], [$1="$$1 $2"])
  AS_VAR_POPDEF([zb_cv])
])

# ZB_TRY_LDFLAG(VAR, FLAG): likewise for the linker.
AC_DEFUN([ZB_TRY_LDFLAG], [
  AS_VAR_PUSHDEF([zb_cv], [zb_cv_ldflag_$2])
  AC_CACHE_CHECK([whether the linker accepts $2], [zb_cv], [
    zb_saved_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS $2"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AS_VAR_SET([zb_cv], [yes])], [AS_VAR_SET([zb_cv], [no])])
    LDFLAGS=$zb_saved_LDFLAGS])
  AS_VAR_IF([zb_cv], [yes], [$1="$$1 $2"])
  AS_VAR_POPDEF([zb_cv])
])

# ZB_FLAGS: warnings, hardening, sanitizers. Sets ZB_CFLAGS, ZB_LDFLAGS,
# ZB_CPPFLAGS; never touches the builder's CFLAGS.
AC_DEFUN([ZB_FLAGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors])], [], [enable_werror=no])
  AC_ARG_WITH([sanitizers], [AS_HELP_STRING([--with-sanitizers=LIST], [e.g. address,undefined (turns hardening off)])], [], [with_sanitizers=no])
  AC_ARG_ENABLE([fuzzing], [AS_HELP_STRING([--enable-fuzzing], [build the libFuzzer programs (clang)])], [], [enable_fuzzing=no])
  ZB_CFLAGS= ZB_LDFLAGS= ZB_CPPFLAGS=
  m4_foreach_w([ZB_EACH], [-Wall -Wextra -Wpedantic -Wformat=2 -Wshadow -Wstrict-prototypes -Wmissing-prototypes
      -Wold-style-definition -Wwrite-strings -Wpointer-arith -Wcast-qual -Wundef -Wvla -Walloca -Wswitch-enum
      -Wimplicit-fallthrough -Wconversion -Wno-sign-conversion -Wdate-time
      -Wlogical-op -Wduplicated-cond -Wduplicated-branches],
    [ZB_TRY_CFLAG([ZB_CFLAGS], ZB_EACH)])
  AS_IF([test "$with_sanitizers" = no || test -z "$with_sanitizers"], [
    m4_foreach_w([ZB_EACH], [-fstack-protector-strong -fstack-clash-protection -fcf-protection=full -fno-strict-overflow
        -fno-strict-aliasing -fno-delete-null-pointer-checks -ftrivial-auto-var-init=zero -fzero-call-used-regs=used-gpr],
      [ZB_TRY_CFLAG([ZB_CFLAGS], ZB_EACH)])
    # Fortify needs optimisation, and a builder's own setting stands.
    AS_CASE([" $CFLAGS $CPPFLAGS "], [*FORTIFY_SOURCE*|*" -O0 "*], [], [ZB_CPPFLAGS="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"])
    ZB_PIE_CFLAGS=-fPIE ZB_PIE_LDFLAGS=-pie
    # Every symbol is bound at the start (-z now): a table of stubs would only
    # be one more group of pages that each process has for itself.
    ZB_TRY_CFLAG([ZB_PIE_CFLAGS], [-fno-plt])
    ZB_TRY_LDFLAG([ZB_LDFLAGS], [[-Wl,-z,relro]])
    ZB_TRY_LDFLAG([ZB_LDFLAGS], [[-Wl,-z,now]])
    ZB_TRY_LDFLAG([ZB_LDFLAGS], [[-Wl,-z,noexecstack]])
    ZB_TRY_LDFLAG([ZB_LDFLAGS], [[-Wl,-z,separate-code]])
  ], [
    ZB_CFLAGS="$ZB_CFLAGS -fsanitize=$with_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer -g"
    ZB_LDFLAGS="-fsanitize=$with_sanitizers"
    ZB_PIE_CFLAGS= ZB_PIE_LDFLAGS=
  ])
  AS_IF([test "$enable_werror" = yes], [ZB_CFLAGS="$ZB_CFLAGS -Werror"])
  AC_SUBST([ZB_CFLAGS]) AC_SUBST([ZB_LDFLAGS]) AC_SUBST([ZB_CPPFLAGS])
  AC_SUBST([ZB_PIE_CFLAGS]) AC_SUBST([ZB_PIE_LDFLAGS])
  AM_CONDITIONAL([ENABLE_FUZZING], [test "$enable_fuzzing" = yes])
  AM_CONDITIONAL([SANITIZED], [test "$with_sanitizers" != no && test -n "$with_sanitizers"])
])
