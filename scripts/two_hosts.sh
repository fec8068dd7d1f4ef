#!/bin/sh
# Runs two processes of a command on two hosts that this machine emulates: network namespaces with host names of their
# own, joined by a link of MBIT Mbit/s in each direction. Host two also has process numbers of its own.
#
#   two_hosts.sh MBIT [OPTION OF MPIRUN...] COMMAND...
#
# mpirun starts them over TCP, rank 0 on host `one`, rank 1 on host `two`. Needs root, iproute2 and Open MPI. The link
# and both hosts are gone when it ends. Exit status: mpirun's, or 77 where network namespaces may not be made.
set -eu

unavailable() {
  echo "two_hosts: $1" >&2
  exit 77
}

# mpirun reaches the other host through this, a shell there in place of ssh. The host's processes end with that shell.
if [ "${1:-}" = --on ]; then
  host=$2
  shift 3 # --on, the host, and the address
  exec ip netns exec "wisp-$host" unshare --uts --pid --fork sh -c "hostname ${host%%-*}; $*"
fi

[ $# -ge 2 ] || {
  sed -n '2,8p' "$0" >&2
  exit 2
}
rate=$1
shift
for program in ip tc unshare mpirun; do
  command -v "$program" >/dev/null || unavailable "there is no $program here: apt-get install iproute2 util-linux openmpi-bin"
done
one=one-$$
two=two-$$

leave() {
  for host in "$one" "$two"; do
    ip netns pids "wisp-$host" 2>/dev/null | xargs -r kill -9 2>/dev/null || :
    ip netns delete "wisp-$host" 2>/dev/null || :
  done
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

{ ip netns add "wisp-$one" && ip netns add "wisp-$two" &&
  ip link add veth0 netns "wisp-$one" type veth peer name veth0 netns "wisp-$two"; } ||
  unavailable "this user or container may not make network namespaces; root may, with CAP_SYS_ADMIN and CAP_NET_ADMIN"
ip netns exec "wisp-$two" unshare --uts --pid --fork true 2>/dev/null ||
  unavailable "this user or container may not give a host a name and process numbers of its own"
join() { # HOST ADDRESS
  ip -n "wisp-$1" address add "$2/24" dev veth0
  ip -n "wisp-$1" link set lo up
  ip -n "wisp-$1" link set veth0 up
  tc -n "wisp-$1" qdisc add dev veth0 root tbf rate "${rate}mbit" burst 32kb latency 100ms
}
{ join "$one" 10.77.0.1 && join "$two" 10.77.0.2; } || unavailable "the link cannot be held to $rate Mbit/s"

self=$(realpath "$0")
# mpirun's daemon on host two must not leave its shell (--leave-session-attached).
# shellcheck disable=SC2016  # the inner shell's
ip netns exec "wisp-$one" unshare --uts sh -c 'hostname one; exec "$@"' sh mpirun --allow-run-as-root \
  --leave-session-attached --mca plm_rsh_agent "$self --on $two" --mca plm_rsh_no_tree_spawn 1 --mca btl tcp,self \
  --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
  --host 10.77.0.1:1,10.77.0.2:1 -n 2 "$@"
