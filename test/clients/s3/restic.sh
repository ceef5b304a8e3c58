# restic: init, two backups, check, restore, forget and prune.
. "$SCENARIOS/expect.sh"
export RESTIC_REPOSITORY="s3:$ENDPOINT/$BUCKET/backups" RESTIC_PASSWORD=secret RESTIC_CACHE_DIR="$PWD/cache"

refuses 'Is there a repository' restic snapshots
restic init
refuses 'already' restic init
restic backup files
cp files/big.bin first.bin
head -c 3000000 part.bin >>files/big.bin
cat part.bin >>files/big.bin
restic backup files
is "$(restic snapshots --json | jq length)" 2
restic check --read-data
restic restore latest --target back
diff -r files "back$PWD/files" 2>/dev/null || diff -r files back/files
restic dump "$(restic snapshots --json | jq -r '.[0].id')" "$PWD/files/big.bin" 2>/dev/null >dumped.bin ||
  restic dump "$(restic snapshots --json | jq -r '.[0].id')" files/big.bin >dumped.bin
cmp dumped.bin first.bin
restic forget --keep-last 1 --prune
is "$(restic snapshots --json | jq length)" 1
# The cache is not asked.
restic --no-cache check --read-data
restic --no-cache restore latest --target again
diff -r back again
restic unlock --remove-all
