#!/bin/sh
# Tests scripts/two_hosts.sh: a process on each host, mpirun's status, and nothing left behind; and that a killed rank
# of the other host is named, and messages arrive there. Exit status 77 where it may not run.
#
#   two_hosts_test.sh ROOT [WISP MPI_TEST]    # programs of a build with MPI
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

[ $# -eq 3 ] || exit 0
"$two_hosts" 1000 "$3" --gtest_brief=1 --gtest_filter='Mpi.*Message*'

log=$(mktemp)
"$two_hosts" 50 "$2" train "$1/apps/configs/cifar10_resnet20.toml" --out "$log.run" train.log_every=1 \
  data.name=synthetic data.train_count=64000 data.test_count=100 model.depth=8 train.batch=4 >"$log" 2>&1 &
job=$!
clean() {
  for host in one two; do ip netns pids "wisp-$host-$job" 2>/dev/null | xargs -r kill -9 2>/dev/null || :; done
  rm -rf "$log" "$log.run"
}
trap clean EXIT
tries=0
until grep -q '^epoch 1/' "$log"; do
  tries=$((tries + 1))
  if [ "$tries" -gt 600 ] || ! kill -0 "$job"; then fail "the run does not start: $(cat "$log")"; fi
  sleep 0.1
done
killed=0
for process in $(ip netns pids "wisp-two-$job"); do
  [ "$(readlink "/proc/$process/exe")" != "$(realpath "$2")" ] || { kill -9 "$process" && killed=$((killed + 1)); }
done
[ "$killed" = 1 ] || fail "expected one process of the run on host two, found $killed"
status=0
wait "$job" || status=$?
[ "$status" = 137 ] || fail "expected status 137 after a rank was killed, got $status: $(cat "$log")"
grep -q 'rank 1 with PID .* on node 10.77.0.2 exited on signal 9' "$log" || fail "rank 1 is not named: $(cat "$log")"
