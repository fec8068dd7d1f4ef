#!/bin/sh
# Tests scripts/two_hosts.sh: a process on each host, mpirun's status, and nothing left behind. Exit status 77 where it
# may not run.
#
#   two_hosts_test.sh ROOT
set -eu

two_hosts=$1/scripts/two_hosts.sh
fail() {
  echo "two_hosts_test: $1" >&2
  exit 1
}

said=$("$two_hosts" 50 sh -c 'hostname; ip netns identify') || exit $?
[ "$(echo "$said" | sed 's/-[0-9]*$//' | sort | tr '\n' ' ')" = "one two wisp-one wisp-two " ] ||
  fail "expected hosts one and two, got: $said"
for left in $(echo "$said" | grep wisp-); do
  ! ip netns list | grep -q "^$left" || fail "left $left behind"
done
status=0
"$two_hosts" 50 sh -c 'exit 3' 2>/dev/null || status=$?
[ "$status" = 3 ] || fail "expected the command's status 3, got $status"
status=0
"$two_hosts" 50 2>/dev/null || status=$?
[ "$status" = 2 ] || fail "expected status 2 without a command, got $status"
status=0
PATH=/nowhere /bin/sh "$two_hosts" 50 hostname 2>/dev/null || status=$?
[ "$status" = 77 ] || fail "expected status 77 without the programs, got $status"
