#!/bin/sh
# Before a removal, which keeps /var/lib/ashlar and /etc/ashlar, and before an upgrade.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now ashlar.service ashlar-backup.timer || true
fi
