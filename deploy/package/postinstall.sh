#!/bin/sh
# After an installation or an upgrade. A running server is not restarted: the operator
# chooses when, see docs/guides/upgrading.md.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers ashlar.conf
	systemd-tmpfiles --create ashlar.conf
	[ ! -e /etc/ashlar/ashlar.yaml ] || chgrp ashlar /etc/ashlar/ashlar.yaml
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
