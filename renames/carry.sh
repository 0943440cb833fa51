#!/usr/bin/env bash
# carry.sh CLONE BASE: the work of a branch since BASE, in new names, as the branch carried of /tmp/carry
set -euo pipefail
clone=$(realpath "$1"); base=$2
rm -rf /tmp/carry; git clone -q "$clone" /tmp/carry; cd /tmp/carry
tip=$(git -C "$clone" rev-parse HEAD)
git checkout -q -b new "$base"; python /work/renames/rename.py /tmp/carry; git -c user.name=x -c user.email=x@x commit -qm base
git tag renamed-base
git checkout -q -f "$tip"; python /work/renames/rename.py /tmp/carry; tree=$(git write-tree)
commit=$(git -c user.name=x -c user.email=x@x commit-tree "$tree" -p renamed-base -m "Work of a branch, in new names")
git branch -f carried "$commit"
git diff --binary --stat renamed-base carried | tail -1
echo "in the target: git fetch /tmp/carry carried && git cherry-pick FETCH_HEAD"
