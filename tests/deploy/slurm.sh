#!/usr/bin/env bash
# Runs the sbatch scripts, or the mpirun line of docs/slurm.md, on one host in its own network
# namespace.
#
#   slurm.sh slurm|mpirun VIADUCT WORK
#
# exit: 0 passed; 1 failed; 77 skipped, with the reason
set -euo pipefail
what=$1 viaduct=$(realpath -- "$2") work=$3
root=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")

skip() {
  echo "skipped: $*"
  exit 77
}

# The rest runs in namespaces that end with this script, and so do all daemons.
if [[ -z ${INSIDE:-} ]]; then
  case $what in
    slurm) needed=(sbatch srun slurmctld slurmd munged) ;;
    mpirun) needed=(mpirun) ;;
  esac
  for tool in "${needed[@]}"; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || skip "$tool is not installed (Debian: slurm-wlm, munge, openmpi-bin)"
  done
  unshare --net --uts --mount --pid --fork --mount-proc true 2>/dev/null || skip "no right to make namespaces"
  INSIDE=yes exec unshare --net --uts --ipc --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

mkdir -p "$work"
work=$(mktemp -d -p "$(realpath -- "$work")")
trap 'rm -rf -- "$work"' EXIT
hostname node0
ip link set lo up
ip link add eth0 type bridge
ip address add 10.99.0.1/24 dev eth0
ip link set eth0 up
printf '127.0.0.1 localhost\n10.99.0.1 node0\n' >"$work/hosts"
mount --bind "$work/hosts" /etc/hosts
mkdir "$work/bin"
ln -s "$viaduct" "$work/bin/viaduct"
export PATH=$work/bin:$PATH:/usr/sbin VIADUCT_SECRET=swordfish XDG_RUNTIME_DIR=$work
unset "${!SLURM_@}" "${!OMPI_@}"
cd "$work"

rows() {
  cat "$1"
  grep -q '^ *64 KiB ' "$1"
}

with_mpirun() {
  local line
  line=$(grep '^mpirun' "$root/docs/slurm.md")
  line=${line/--host node0,node1/--host node0:2}
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 bash -c "$line --duration=100ms" >mpirun.log 2>&1 || {
    cat mpirun.log
    return 1
  }
  rows mpirun.log
}

start_slurm() {
  head -c 128 /dev/urandom >munge.key
  chmod 400 munge.key
  munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
    --log-file="$work/munge.log" --seed-file="$work/munge.seed"
  mkdir state spool
  cat >slurm.conf <<TEXT
ClusterName=test
SlurmctldHost=node0
SlurmUser=root
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MailProg=/bin/true
NodeName=node0 NodeAddr=10.99.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=node0 Default=YES State=UP OverSubscribe=FORCE:4
TEXT
  export SLURM_CONF=$work/slurm.conf
  slurmctld -L "$work/slurmctld.log"
  slurmd -L "$work/slurmd.log"
}

with_slurm() {
  start_slurm
  # Runs two tasks on one node; the script itself asks for one per node.
  timeout 180 sbatch --wait --nodes=1 --ntasks-per-node=2 --overcommit "$root/deploy/slurm/bench.sbatch" --backend=tcp \
    --block-sizes=64K --duration=100ms || {
    tail -n 20 viaduct-*.log slurm*.log munge.log
    return 1
  }
  rows viaduct-*.log
  [[ -s $(echo viaduct-*.json) ]]
  timeout 180 sbatch --wait --nodes=1 "$root/deploy/slurm/doctor.sbatch" --only=cpu || {
    tail -n 20 viaduct-doctor-*.log viaduct-doctor-*/*.txt
    return 1
  }
  [[ -s $(echo viaduct-doctor-*/node0.json) ]]
  grep -q node0 viaduct-doctor-*.html
}

"with_$what"
