#!/bin/sh
# Run a command whose temporary files are in memory, where that has room: tests wait for the disk thousands of times.
#
# The files of a command that failed stay, and it says where.
set -u

room_kb() { df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }'; }
free_kb() { awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null; }

place=
if [ -w /dev/shm ] && [ "$(room_kb)" -gt 4000000 ] && [ "$(free_kb)" -gt 8000000 ]; then
    place=$(mktemp -d /dev/shm/loopwright-tests-XXXXXX) || place=
fi
# Some systems run no program from there.
if [ -n "$place" ]; then
    printf '#!/bin/sh\n' > "$place/probe"
    chmod +x "$place/probe"
    "$place/probe" 2>/dev/null || { rm -rf "$place"; place=; }
fi
[ -n "$place" ] || exec "$@"
rm "$place/probe"

TMPDIR=$place "$@"
code=$?
if [ $code -eq 0 ]; then
    rm -rf "$place"
else
    echo "the files of these tests are in $place, in memory: delete them when you have seen them"
fi
exit $code
