#!/bin/sh
# Without Faultline the metrics go to standard output, and phases have no effect.
: "${FAULTLINE_FD:=1}"

# Begins a phase; Faultline reads the kernel's counters before the function returns.
phase() {
	[ "$FAULTLINE_ACK_FD" ] || return 0
	echo "phase $1" >&"$FAULTLINE_FD"
	read -r acknowledged <&"$FAULTLINE_ACK_FD"
}

# Hundredths of a second since the boot.
now() {
	read -r uptime idle </proc/uptime
	# A number that begins with 0 would be octal.
	echo "$((${uptime%.*} * 100 + 1${uptime#*.} - 100))"
}

phase fork
begun=$(now)
i=0
while [ "$i" -lt "${1:-64}" ]; do
	(:)
	i=$((i + 1))
done
ended=$(now)
phase ""
echo "sample Elapsed $(((ended - begun) / 100)).$(((ended - begun) / 10 % 10))$(((ended - begun) % 10))" >&"$FAULTLINE_FD"
