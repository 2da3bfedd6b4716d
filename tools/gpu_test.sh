#!/usr/bin/env bash
# Runs the tests on a GPU, then a subset under NVIDIA's compute-sanitizer. Needs only the test programs,
# nothing else of this tree. See tools/gpu_test.sh --help.
set -euo pipefail

usage() {
  cat <<'TEXT'
tools/gpu_test.sh [--binaries DIR] [--device NAME] [--quick] [-j N] [--programs "A B"] [--tools "A B"]
                  [--cudart DIR]

  Runs cuda_tests, ops_tests, random_tests and cudnn_tests on a GPU, sharded over the CPU cores, the C
  programs cudnn_c_* with CUDA's own runtime, then a reduced set under each tool of compute-sanitizer. Exits
  with 0 when every test passed and no tool found an error.

  --binaries DIR   folder of the programs (default: build/tests); DIR/lib, if it exists, is searched for the
                   libraries they need
  --device NAME    the device (default: cuda:0)
  --quick          without compute-sanitizer
  -j N             shards in parallel (default: number of CPU cores)
  --programs LIST  test programs (default: cuda_tests ops_tests random_tests cudnn_tests)
  --tools LIST     tools of compute-sanitizer (default: memcheck racecheck initcheck synccheck)
  --cudart DIR     folder of NVIDIA's libcudart.so.13 (default: a toolkit in /usr/local/cuda*); without one
                   the C programs are skipped with a message
TEXT
}

say() { printf '%s\n' "$*"; }
die() { printf 'gpu_test: %s\n' "$*" >&2; exit 2; }

binaries=build/tests device=cuda:0 quick=0 jobs=$(nproc 2>/dev/null || say 2)
programs=(cuda_tests ops_tests random_tests cudnn_tests) cudart=
tools=(memcheck racecheck initcheck synccheck)
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --quick) quick=1; shift; continue ;;
    --binaries | --device | -j | --programs | --tools | --cudart) (($# > 1)) || die "$1 needs a value" ;;
    *) usage >&2; die "unknown option '$1'" ;;
  esac
  case $1 in
    --binaries) binaries=$2 ;;
    --device) device=$2 ;;
    -j) jobs=$2 ;;
    --programs) read -ra programs <<<"$2" ;;
    --tools) read -ra tools <<<"$2" ;;
    --cudart) cudart=$2 ;;
  esac
  shift 2
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || die "-j needs a number, got '$jobs'"
binaries=$(cd "$binaries" 2>/dev/null && pwd) || die "the folder of programs does not exist; --binaries DIR"
for program in "${programs[@]}"; do
  [[ -x $binaries/$program ]] || die "$binaries has no $program"
done
if [[ -d $binaries/lib ]]; then
  export LD_LIBRARY_PATH=$binaries/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
export ASHLAR_TEST_DEVICE=$device
# One process per core already: more threads per process would oversubscribe the CPU.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=passive
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# part LOG SHARDS INDEX SECONDS COMMAND...: one shard of a program's tests, output in LOG, exit status
# in LOG.status.
part() {
  local log=$1 shards=$2 index=$3 seconds=$4 status=0
  shift 4
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$index timeout "$seconds" "$@" >"$log" 2>&1 || status=$?
  echo "$status" >"$log.status"
}

# run_parts NAME SECONDS SHARDS COMMAND...: all shards of a command, `jobs` in parallel.
run_parts() {
  local name=$1 seconds=$2 shards=$3 index
  shift 3
  for ((index = 0; index < shards; ++index)); do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    part "$logs/$name.$index" "$shards" "$index" "$seconds" "$@" &
  done
}

# The test of all cases of an operation compiles hundreds of kernels sequentially: split it over four
# processes.
run_walk() {
  local quarter
  for quarter in 0 1 2 3; do
    ASHLAR_TEST_PART=$quarter/4 run_parts "$1.$quarter" "${@:2}"
  done
}

count() { { grep -hcE "$1" "${@:2}" || true; } | awk '{sum += $1} END {print sum + 0}'; }

# Sets passed, failed and skipped from the logs of NAME; a test that started and did not finish counts as failed,
# and so does a shard that exited with an error without naming a test.
tally() {
  local name=$1 log started status own
  passed=$(count '^\[       OK \]' "$logs/$name".*)
  skipped=$(count '^\[  SKIPPED \] .* ms\)$' "$logs/$name".*)
  failed=0
  for log in "$logs/$name".*.status; do
    status=$(<"$log")
    log=${log%.status}
    started=$(count '^\[ RUN      \]' "$log")
    own=$((started - $(count '^\[       OK \]|^\[  SKIPPED \] .* ms\)$' "$log")))
    if ((status != 0 && own == 0)); then own=1; fi
    failed=$((failed + own))
    ((own == 0)) && continue
    say "-- $name, status $status:"
    grep -E '^\[  FAILED  \] .* ms\)$' "$log" || say "   died in $(grep -E '^\[ RUN' "$log" | tail -n 1)"
    { grep -vE '^\[( RUN|       OK|  PASSED|  SKIPPED)|^\[[-=]' "$log" || true; } | tail -n 40 | cut -c1-400
  done
}

all_passed=0 all_failed=0 all_skipped=0
say "== tests on $device, $jobs shards in parallel"
for program in "${programs[@]}"; do
  start=$SECONDS
  # Four shards per core balance the load.
  tests=$("$binaries/$program" --gtest_list_tests | grep -c '^  ' || true)
  ((tests > 0)) || die "$program does not list its tests"
  shards=$((tests < 4 * jobs ? tests : 4 * jobs))
  run=run_parts
  [[ $program == ops_tests ]] && run=run_walk
  $run "$program" 1500 "$shards" "$binaries/$program"
  wait
  tally "$program"
  grep -h '^summary: ' "$logs/$program".* || true
  say "== $program: $passed passed, $failed failed, $skipped skipped in $((SECONDS - start)) s"
  all_passed=$((all_passed + passed))
  all_failed=$((all_failed + failed))
  all_skipped=$((all_skipped + skipped))
done

# The legacy API of libcudnn, in C, on GPU memory: with NVIDIA's runtime instead of our stand-in.
for place in /usr/local/cuda/lib64 /usr/local/cuda-*/lib64; do
  [[ -z $cudart && -e $place/libcudart.so.13 ]] && cudart=$place
done
if [[ -z $cudart ]]; then
  say "== cudnn_c_*: skipped, no libcudart.so.13 of NVIDIA was found; --cudart DIR"
else
  start=$SECONDS passed=0 failed=0
  for program in "$binaries"/cudnn_c_*; do
    name=$(basename "$program")
    [[ -x $program && $name != cudnn_c_hostrt ]] || continue  # tests the stand-in itself
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    LD_LIBRARY_PATH=$cudart${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} part "$logs/$name" 1 0 600 "$program" &
  done
  wait
  for log in "$logs"/cudnn_c_*.status; do
    [[ -e $log ]] || continue
    if [[ $(<"$log") == 0 ]]; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      say "-- $(basename "${log%.status}"), status $(<"$log"):"
      tail -n 20 "${log%.status}" | cut -c1-400
    fi
  done
  say "== cudnn_c_*: $passed passed, $failed failed in $((SECONDS - start)) s"
  all_passed=$((all_passed + passed))
  all_failed=$((all_failed + failed))
fi

verdicts=() dirty=0
if ((!quick)); then
  sanitizer=$(command -v compute-sanitizer || true)
  for place in /usr/local/cuda/bin /usr/local/cuda-*/bin /opt/cuda/bin; do
    [[ -z $sanitizer && -x $place/compute-sanitizer ]] && sanitizer=$place/compute-sanitizer
  done
  if [[ -z $sanitizer ]]; then
    verdicts=("no compute-sanitizer")
    say "== compute-sanitizer is neither on the path nor in a toolkit: install it, or use --quick"
    dirty=1
  else
    # Every operation with one variant per case, and a few random graphs. Excludes tests that provoke
    # driver errors or need no GPU.
    export ASHLAR_TEST_SHORT=1
    filter='Op/EveryEngine*:*RandomGraphs*:Gpu*:*/Gpu*-*Misuse*:GpuErrors*:*CannotBe*'
    for tool in "${tools[@]}"; do
      start=$SECONDS
      for program in "${programs[@]}"; do
        run_parts "$tool.$program" 600 "$jobs" "$sanitizer" --tool "$tool" --error-exitcode 9 \
          --print-limit 10 "$binaries/$program" --gtest_filter="$filter"
      done
      wait
      tally "$tool"
      found=$(grep -hE 'ERROR SUMMARY|RACECHECK SUMMARY' "$logs/$tool".* | grep -cvE ' 0 (errors|hazards)' || true)
      verdict="$tool clean"
      if ((failed > 0 || found > 0)); then
        verdict="$tool FAILED"
        dirty=1
      elif ((passed == 0)); then
        verdict="$tool ran nothing"
        dirty=1
      fi
      verdicts+=("$verdict")
      say "== $verdict: $passed tests in $((SECONDS - start)) s"
    done
  fi
fi

say "gpu-test: $all_passed passed, $all_failed failed, $all_skipped skipped on $device in $SECONDS s"
((quick)) || say "compute-sanitizer: $(IFS=,; say "${verdicts[*]}" | sed 's/,/, /g')"
((all_failed == 0 && all_passed > 0 && !dirty))
