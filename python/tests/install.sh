#!/usr/bin/env bash
# install.sh PYTHON BUILD FOLDER: makes the wheels of BUILD and installs them into FOLDER by pip.
set -euo pipefail
python=$1 build=$2 folder=$3
source=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
backend=$source/python/build_backend/viaduct_build.py
rm -rf -- "$folder" "$folder.wheels"
"$python" -B "$backend" wheel --build "$build" --out "$folder.wheels"
"$python" -B "$backend" nixl-wheel --out "$folder.wheels"
# pip ignores the settings of the user and uses no network. Its warning to root does not apply to a separate folder.
export PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
"$python" -m pip install --quiet --no-index --no-deps --no-cache-dir --target "$folder" "$folder.wheels"/*.whl
