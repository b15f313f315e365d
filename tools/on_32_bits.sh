#!/bin/sh
# Tests on a 32-bit Python, whose indices are as short as those of a browser's:
#   tools/on_32_bits.sh tests/shift tests/accounting
# Debian's packages for i386 (Python 3.13, numpy 2.2, scipy 1.15) are unpacked into out/on-32-bits, and nothing is installed.
# It needs a 64-bit x86 machine with apt-get, and 200 MB.
set -eu
cd "$(dirname "$0")/.."
root="$PWD/out/on-32-bits"
apt="$root/apt"
if [ ! -e "$root/ready" ]; then
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
  : > "$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" > "$apt/sources.list"
  set_up() {
    apt-get -qq -o APT::Architecture=i386 -o APT::Architectures=i386 -o APT::Install-Recommends=0 -o APT::Sandbox::User=root \
      -o Debug::NoLocking=1 -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
      -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::trusted=/dev/null "$@"
  }
  set_up update
  set_up -y --download-only install python3-numpy python3-scipy python3-pytest python3-hypothesis python3-mpmath
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  # What is asked of an installed package: its version.
  mkdir -p "$root/here/lastiterate-0.1.0.dist-info"
  printf 'Metadata-Version: 2.1\nName: lastiterate\nVersion: 0.1.0\n' > "$root/here/lastiterate-0.1.0.dist-info/METADATA"
  touch "$root/ready"
fi
libraries="$root/usr/lib/i386-linux-gnu"
cat > "$root/python" << END
#!/bin/sh
PYTHONHOME="$root/usr" exec "$root/usr/lib/ld-linux.so.2" --library-path "$libraries:$libraries/blas:$libraries/lapack" "$root/usr/bin/python3.13" "\$@"
END
chmod +x "$root/python"
export PYTHONPATH="$PWD/src:$PWD:$root/here" OPENBLAS_NUM_THREADS=1
"$root/python" -c '
import sys, numpy, pytest
assert sys.maxsize < 2**32
print("Python", sys.version.split()[0], "numpy", numpy.__version__, numpy.intp)
sys.executable = sys.argv[1]  # for tests that start Python once more
sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[2:]]))
' "$root/python" "$@"
