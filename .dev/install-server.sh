#!/bin/sh
# sh install-server.sh redis-server: installs a server of Debian or Ubuntu, as root. Its package brings a service of the
# same name that starts at once and at every boot: nobody asked for that one, so it is neither started nor left enabled.
set -eu

# Debian asks this program before a package may start a service; 101 means no. A machine that has one keeps it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
# One unreachable source of many is no reason to give up: the installation itself tells whether it mattered.
apt-get update -q || true
apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=300 "$1"

update-rc.d "$1" disable
# The machine's own policy may have let it start.
service "$1" stop
