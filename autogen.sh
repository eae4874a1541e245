#!/bin/sh
# Make configure from configure.ac. Needs autoconf and automake.
set -eu
cd "$(dirname "$0")"
exec autoreconf --force --install
