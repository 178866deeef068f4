#!/bin/sh
# Run a program in several processes that MPI joins:   examples/with_mpi.sh -n 2 python train.py
# Installs Debian's Open MPI, and mpi4py into the environment of `python`, where they are missing.
set -e
if ! command -v mpiexec > /dev/null; then
    if ! command -v apt-get > /dev/null; then
        echo "mpiexec is missing: install an MPI library (Open MPI or MPICH)" >&2
        exit 2
    fi
    run=""
    [ "$(id -u)" = 0 ] || run="sudo"
    export DEBIAN_FRONTEND=noninteractive
    $run apt-get update -qq && $run apt-get install -y -qq openmpi-bin libopenmpi-dev > /dev/null
fi
python="${PYTHON:-python}"
"$python" -c "import mpi4py" 2> /dev/null || "$python" -m pip install -q mpi4py
if mpiexec --version 2>&1 | grep -q "Open"; then
    set -- --oversubscribe "$@"
    [ "$(id -u)" != 0 ] || set -- --allow-run-as-root "$@"
fi
exec mpiexec "$@"
