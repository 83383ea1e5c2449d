#!/usr/bin/env bash
# Measures two pods of a cluster: deploys, waits, collects, makes the report, and removes what it made.
set -euo pipefail
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")

usage() {
  cat <<'TEXT'
usage: deploy/run-bench.sh --image IMAGE [...]

  --image NAME:TAG        the image of deploy/docker/, where the nodes can pull it
  --namespace NAME        default: viaduct
  --mode tcp|rdma         tcp, the default, runs anywhere; rdma takes the overlay that fits the nodes
  --type multi|single     the pods run on two nodes, the default, or on one
  --overlay NAME          a folder of deploy/k8s/overlays, in the place of --mode
  --baselines NAME,...    raw tools to run between the same pods, or none; default: those of the overlay
  --output FOLDER         default: viaduct-results
  --timeout SECONDS       default: 1800
  --keep                  remove nothing at the end
  --dry-run               print the manifests, and create nothing

exit: 0 every row is believed; 1 the run failed, or a row is not believed; 2 wrong use
TEXT
}

image='' namespace=viaduct mode=tcp type=multi overlay='' baselines='' output=viaduct-results timeout=1800
keep=no dry_run=no

wrong() {
  echo "run-bench: $*" >&2
  exit 2
}
fail() {
  printf 'run-bench: %s\n' "$@" >&2
  exit 1
}
say() { echo "run-bench: $*"; }

parse() {
  while (($#)); do
    case $1 in
      --keep) keep=yes ;;
      --dry-run) dry_run=yes ;;
      --help | -h) usage; exit 0 ;;
      --image | --namespace | --mode | --type | --overlay | --baselines | --output | --timeout)
        (($# > 1)) || wrong "$1 needs a value"
        local -n option=${1#--}
        # shellcheck disable=SC2034  # it names another variable
        option=$2
        shift
        ;;
      *) wrong "there is no option $1; --help lists all" ;;
    esac
    shift
  done
  [[ $image == *:* && ${image##*:} != */* && $image != *@* ]] || wrong "--image is the image of deploy/docker/ with its tag, such as registry/viaduct:0.1.0"
  [[ $mode == tcp || $mode == rdma ]] || wrong "--mode is tcp or rdma, not \"$mode\""
  [[ $type == multi || $type == single ]] || wrong "--type is multi or single, not \"$type\""
  [[ $timeout =~ ^[1-9][0-9]*$ ]] || wrong "--timeout is a number of seconds, not \"$timeout\""
  [[ -z $overlay || -d $here/k8s/overlays/$overlay ]] ||
    wrong "there is no overlay \"$overlay\"; there are: $(cd "$here/k8s/overlays" && echo *)"
  command -v kubectl >/dev/null || wrong "kubectl is not installed"
}

k() { kubectl --namespace "$namespace" "$@"; }

# Each overlay for RDMA, and the resource of its device plugin; the first that the nodes offer is taken.
devices=("eks-efa vpc.amazonaws.com/efa" "openshift-sriov openshift.io/rdma" "bare-metal-rdma rdma/hca_shared_devices_a")

# Lines "NODE ARCHITECTURE RESOURCES"; empty where this user may not list nodes.
nodes() {
  kubectl get nodes -o \
    jsonpath='{range .items[*]}{.metadata.name}{" "}{.status.nodeInfo.architecture}{" "}{.status.allocatable}{"\n"}{end}' \
    2>/dev/null || true
}
nodes_with() { grep -cE "\"$1\":\"?[1-9]" <<<"$all_nodes" || true; }

choose_overlay() {
  all_nodes=$(nodes)
  if [[ -z $overlay && $mode == tcp ]]; then overlay=generic-tcp; fi
  if [[ -z $overlay && -z $all_nodes ]]; then
    fail "the nodes cannot be listed, so no overlay can be chosen" "what to do: name it with --overlay, or kubectl get nodes"
  fi
  local row found
  for row in "${devices[@]}"; do
    found=$(nodes_with "${row#* }")
    if [[ -z $overlay ]] && ((found)); then overlay=${row% *}; fi
    [[ $overlay == "${row% *}" && -n $all_nodes ]] || continue
    ((found)) || fail "no node offers ${row#* }: its device plugin does not run, or the nodes have no such device" \
      "what to do: kubectl get daemonsets --all-namespaces, and kubectl describe nodes; docs/kubernetes.md has the steps"
    ((found > 1)) || [[ $type == single ]] || fail "only one node offers ${row#* }, and --type multi needs two"
  done
  [[ -n $overlay ]] || fail "no node offers a device for RDMA (${devices[*]#* }): the device plugin does not run" \
    "what to do: docs/kubernetes.md has the steps; --mode tcp needs no device; --overlay NAME skips this question"
}

# A kustomization over the overlay: the parts of this run, the image, and the pods on one node or on two.
write_kustomization() {
  local rule=podAntiAffinity other=podAffinity up
  if [[ $type == single ]]; then rule=podAffinity other=podAntiAffinity; fi
  up=$(realpath --relative-to="$work" "$here/k8s/overlays/$overlay")
  cat >"$work/kustomization.yaml" <<TEXT
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$up]
images:
  - {name: viaduct, newName: "${image%:*}", newTag: "${image##*:}"}
patches:
  - target: {labelSelector: "part notin (bench,shared)"}
    patch: |-
      \$patch: delete
      kind: Any
      metadata: {name: any}
  - target: {kind: Job}
    patch: |-
      apiVersion: batch/v1
      kind: Job
      metadata: {name: every-job}
      spec:
        suspend: true
        template:
          spec:
            affinity:
              $other: null
              $rule:
                preferredDuringSchedulingIgnoredDuringExecution: null
                requiredDuringSchedulingIgnoredDuringExecution:
                  - topologyKey: kubernetes.io/hostname
                    labelSelector:
                      matchLabels: {part: bench}
TEXT
  if [[ -n $baselines ]]; then
    cat >>"$work/kustomization.yaml" <<TEXT
  - patch: |-
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: viaduct}
      data: {BASELINES: "${baselines/#none/}"}
TEXT
  fi
}

render() { kubectl kustomize "$work" >"$work/objects.yaml"; }

check_namespace() {
  kubectl get namespace "$namespace" >/dev/null 2>&1 ||
    fail "there is no namespace $namespace, or kubectl does not reach the cluster" \
      "what to do: kubectl cluster-info; kubectl create namespace $namespace"
  local token
  token=$(k get secret viaduct -o jsonpath='{.data.token}' 2>/dev/null) || token=''
  [[ -n $token ]] || fail "the namespace $namespace has no secret viaduct with the key token" \
    "what to do: kubectl -n $namespace create secret generic viaduct --from-literal=token=\"\$(openssl rand -hex 32)\""
}

# A run that has ended is replaced; one that goes on is left alone.
check_other_run() {
  local conditions
  conditions=$(k get job viaduct-bench -o jsonpath='{range .status.conditions[*]}{.type}={.status} {end}' 2>/dev/null) || return 0
  case $conditions in
    *Complete=True* | *Failed=True*)
      say "the run of before has ended; its objects are removed"
      remove
      ;;
    *) fail "another run goes on in the namespace $namespace: Job viaduct-bench" \
      "what to do: wait for its end, take another --namespace, or kubectl -n $namespace delete job viaduct-bench" ;;
  esac
}

made=no
remove() {
  k delete job,service -l part=bench --ignore-not-found --wait=true >/dev/null || true
  if [[ -e $work/made-shared ]]; then
    k delete configmap,serviceaccount,networkpolicy,resourceclaimtemplate -l part=shared --ignore-not-found >/dev/null 2>&1 ||
      k delete configmap,serviceaccount,networkpolicy -l part=shared --ignore-not-found >/dev/null || true
  fi
}
finish() {
  if [[ $made == yes && $keep == no ]]; then
    say "removing what was made"
    remove
  fi
  rm -rf -- "$work"
}

# The Job comes first, and suspended: of two runs that start at once, one is refused before it changes anything. Its
# pods start when everything that they need is there.
deploy() {
  local objects=$work/objects.yaml
  if ! k get configmap viaduct >/dev/null 2>&1; then : >"$work/made-shared"; fi
  k create -l job=bench -f - <"$objects" 2>"$work/error" >/dev/null || {
    if grep -q AlreadyExists "$work/error"; then fail "another run began at the same moment in the namespace $namespace"; fi
    fail "the cluster refused the Job: $(cat "$work/error")"
  }
  made=yes
  k apply -l job!=bench -f - <"$objects" >/dev/null
  k patch job viaduct-bench -p '{"spec":{"suspend":false}}' >/dev/null
}

# A line for each pod: name, phase, and the reasons that it gives.
pods() {
  k get pods -l part=bench -o jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\t"}{range .status.conditions[*]}{.reason}{" "}{.message}{" "}{end}{range .status.containerStatuses[*]}{.state.waiting.reason}{" "}{.state.waiting.message}{" "}{.state.terminated.reason}{" "}{.state.terminated.exitCode}{end}{"\n"}{end}'
}

# What no waiting cures.
explain_pods() {
  local line
  line=$(grep -m1 -E 'ErrImage|ImagePullBackOff|InvalidImageName' <<<"$1") &&
    if grep -qE 'no match for platform|no matching manifest' <<<"$line"; then
      fail "$image is for another architecture than the nodes ($(architectures)): ${line#*$'\t'*$'\t'}" \
        "what to do: build it for theirs: deploy/docker/build.sh"
    else
      fail "the image cannot be pulled: ${line#*$'\t'*$'\t'}" "what to do: check --image, and the pull secret of the ServiceAccount viaduct"
    fi
  line=$(grep -m1 -E 'CreateContainerConfigError' <<<"$1") && fail "a pod cannot start: ${line#*$'\t'*$'\t'}" \
    "what to do: check the secret viaduct with the key token, and the ConfigMap viaduct"
  if grep -qE 'StartError|ContainerCannotRun|CrashLoopBackOff|Error [0-9]+' <<<"$1" && logs_have 'exec format error' "$1"; then
    fail "$image is for another architecture than the nodes ($(architectures)): exec format error" \
      "what to do: build it for theirs: deploy/docker/build.sh"
  fi
}
architectures() { awk '{ print $2 }' <<<"$all_nodes" | sort -u | paste -sd' '; }
logs_have() {
  local pod
  grep -qF "$1" <<<"$2" && return
  while IFS=$'\t' read -r pod _; do
    if k logs "$pod" --tail=5 2>/dev/null | grep -qF "$1"; then return 0; fi
  done <<<"$2"
  return 1
}

wait_for_end() {
  local until=$((SECONDS + timeout)) now before='' conditions
  while ((SECONDS < until)); do
    now=$(pods)
    explain_pods "$now"
    conditions=$(k get job viaduct-bench -o jsonpath='{range .status.conditions[*]}{.type}={.status} {end}')
    case $conditions in *Complete=True*) return 0 ;; *Failed=True*) return 1 ;; esac
    if [[ $now != "$before" ]]; then cut -c 1-160 <<<"${now//$'\t'/ }"; fi
    before=$now
    sleep "${RUN_BENCH_POLL:-2}"
  done
  fail "the run did not end within $timeout s; its pods: $(pods | tr '\t\n' '  ')" \
    "what to do: kubectl -n $namespace describe pods -l part=bench; pods that stay Pending wait for devices or nodes"
}

collect() {
  local pod code=0
  mkdir -p -- "$output/logs"
  for pod in $(k get pods -l part=bench --sort-by=.metadata.creationTimestamp -o name); do
    pod=${pod#pod/}
    k logs "$pod" >"$output/logs/$pod.log" || code=1
    "$here/collect-results.sh" "$output" <"$output/logs/$pod.log" || code=1
  done
  return $code
}

report() {
  local viaduct ours=() theirs=() one
  viaduct=$(command -v viaduct || echo "$here/../build/release/apps/viaduct/viaduct")
  for one in "$output"/*-{write,read,latency}.json; do if [[ -s $one ]]; then ours+=("$one"); fi; done
  for one in "$output"/*.txt; do if [[ -s $one ]]; then theirs+=("$one"); fi; done
  ((${#ours[@]})) || fail "no pod left a result; their logs are in $output/logs"
  if [[ ! -x $viaduct ]]; then
    say "no report: viaduct is not installed here; later: viaduct report ${ours[*]} -o $output/report.html"
  elif "$viaduct" report "${ours[@]}" "${theirs[@]}" -o "$output/report.html" 2>"$work/error"; then
    say "report: $output/report.html"
  elif "$viaduct" report "${ours[@]}" -o "$output/report.html"; then
    say "report: $output/report.html, without the baselines: $(cat "$work/error")"
  fi
}

parse "$@"
work=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
all_nodes=
if [[ $dry_run == yes ]]; then
  if [[ -z $overlay && $mode == rdma ]]; then wrong "--dry-run asks no cluster: name the overlay with --overlay"; fi
  : "${overlay:=generic-tcp}"
  write_kustomization
  render
  cat "$work/objects.yaml"
  exit 0
fi
check_namespace
choose_overlay
check_other_run
write_kustomization
render
say "overlay $overlay, $type, in the namespace $namespace"
deploy
code=0
wait_for_end || code=1
collect || code=1
report
if ((code)); then fail "the run failed, or a row is not believed; the logs are in $output/logs"; fi
