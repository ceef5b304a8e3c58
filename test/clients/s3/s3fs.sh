# s3fs: a mounted bucket. It needs FUSE.
. "$SCENARIOS/expect.sh"
printf '%s:%s\n' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >passwd
chmod 600 passwd
mkdir mounted
mount_bucket() {
  s3fs "$BUCKET" mounted -o "passwd_file=passwd,url=$ENDPOINT,use_path_request_style,multipart_size=5,enable_noobj_cache,max_stat_cache_size=0"
  mountpoint -q mounted
}
mount_bucket
trap 'fusermount -u mounted || umount mounted' EXIT

cp -r --preserve=timestamps files/* mounted/
diff -r files mounted
is "$(stat -c '%Y %s' mounted/big.bin)" "$(stat -c '%Y %s' files/big.bin)"
mkdir mounted/empty
mv mounted/notes.txt mounted/empty/renamed.txt
cmp mounted/empty/renamed.txt files/notes.txt
mv mounted/folder mounted/moved
diff -r files/folder mounted/moved
# A change in the middle of a large file sends what changed, and copies the other parts in the store.
cp files/big.bin changed.bin
printf 'changed' | dd of=changed.bin bs=1 seek=12000000 conv=notrunc status=none
printf 'changed' | dd of=mounted/big.bin bs=1 seek=12000000 conv=notrunc status=none
cmp mounted/big.bin changed.bin
echo more >>mounted/empty/renamed.txt
truncate -s 1000 mounted/moved/deep/letter.txt
chmod 600 mounted/empty/renamed.txt
refuses 'Directory not empty' rmdir mounted/empty
fusermount -u mounted || umount mounted
mount_bucket
cmp mounted/big.bin changed.bin
(cat files/notes.txt && echo more) | cmp - mounted/empty/renamed.txt
is "$(stat -c '%a' mounted/empty/renamed.txt)" 600
is "$(stat -c '%s' mounted/moved/deep/letter.txt)" 1000
rm -r mounted/moved
is "$(ls mounted)" 'Größe 1.bin
big.bin
empty
empty.txt'
