# rclone: sync, check, modification times, a file in parts, copies in the store, links, ranges and purge.
. "$SCENARIOS/expect.sh"
export RCLONE_CONFIG="$PWD/rclone.conf" RCLONE_CONFIG_DOOR_TYPE=s3 RCLONE_CONFIG_DOOR_PROVIDER=Other RCLONE_CONFIG_DOOR_ENV_AUTH=true
export RCLONE_CONFIG_DOOR_ENDPOINT="$ENDPOINT" RCLONE_S3_UPLOAD_CUTOFF=5M RCLONE_S3_CHUNK_SIZE=5M
: >rclone.conf
site=door:$BUCKET/site
touch -d '2020-01-02T03:04:05.678901234Z' files/notes.txt

rclone sync files "$site"
rclone check files "$site"
rclone check --download files "$site"
is "$(rclone lsf -R --files-only "$site" | LC_ALL=C sort)" "$(cd files && find . -type f | cut -c 3- | LC_ALL=C sort)"
is "$(rclone lsf --dirs-only "$site")" 'folder/'
has "$(TZ=UTC rclone lsl "$site/notes.txt")" '2020-01-02 03:04:05.678901234'
has "$(rclone sync -v files "$site" 2>&1)" 'nothing to transfer'

# A new time alone is written by a copy of the object onto itself.
touch -d '2021-05-06T07:08:09Z' files/notes.txt files/big.bin
has "$(rclone sync -v files "$site" 2>&1)" 'Updated modification time'
has "$(TZ=UTC rclone lsl "$site")" '2021-05-06 07:08:09.000000000 notes.txt'
has "$(TZ=UTC rclone lsl "$site")" '2021-05-06 07:08:09.000000000 big.bin'
rclone check files "$site"

# Replaced, added and removed files.
echo 'other notes' >files/notes.txt
echo 'new' >'files/folder/new & old.txt'
rm 'files/Größe 1.bin'
rclone sync files "$site"
rclone check files "$site"
is "$(rclone lsf -R --files-only "$site" | wc -l)" "$(find files -type f | wc -l)"
rclone copy "$site" back
diff -r files back
is "$(TZ=UTC stat -c %y back/big.bin)" '2021-05-06 07:08:09.000000000 +0000'

# Copies and moves in the store, and ranges.
rclone copyto "$site/big.bin" "door:$BUCKET/copies/big.bin"
rclone moveto "$site/folder" "door:$BUCKET/moved"
rclone check files/folder "door:$BUCKET/moved"
rclone cat --offset 1000000 --count 4321 "door:$BUCKET/copies/big.bin" | cmp - part.bin
has "$(rclone sync -v door:"$BUCKET/copies" door:"$BUCKET/copies2" 2>&1)" 'server-side copy'
# A public link works without credentials while it lasts.
curl -sS --fail "$(rclone link --expire 1h "door:$BUCKET/copies/big.bin")" | cmp - files/big.bin
# A stream of unknown length.
cat files/big.bin | rclone rcat "door:$BUCKET/stream.bin"
rclone cat "door:$BUCKET/stream.bin" | cmp - files/big.bin
is "$(rclone size --json "door:$BUCKET/stream.bin" | jq -c '[.count, .bytes]')" "[1,$(stat -c %s files/big.bin)]"
is "$(rclone cleanup "door:$BUCKET")" ''
is "$(rclone backend list-multipart-uploads "door:$BUCKET" | jq -c '[.[] | arrays | length] | add')" '0'

# Errors, buckets, and the end of everything.
refuses "doesn't exist" rclone deletefile "$site/nothing"
RCLONE_CONFIG_WRONG_TYPE=s3 RCLONE_CONFIG_WRONG_PROVIDER=Other RCLONE_CONFIG_WRONG_ENDPOINT="$ENDPOINT" RCLONE_CONFIG_WRONG_SECRET_ACCESS_KEY=wrong \
  RCLONE_CONFIG_WRONG_ACCESS_KEY_ID="$AWS_ACCESS_KEY_ID" refuses 'SignatureDoesNotMatch' rclone lsd --retries 1 --low-level-retries 1 wrong:
rclone purge "$site"
is "$(rclone lsf "door:$BUCKET" | LC_ALL=C sort | tr '\n' ' ')" 'copies/ copies2/ moved/ stream.bin '
rclone mkdir "door:$BUCKET-2"
rclone copy files/folder "door:$BUCKET-2"
has "$(rclone lsd door:)" "$BUCKET-2"
rclone purge "door:$BUCKET-2"
refuses 'directory not found' rclone lsf "door:$BUCKET-2"
