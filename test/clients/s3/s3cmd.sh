# s3cmd: buckets, put with headers, lists, parts, sync with MD5, ACLs, copies, signed URLs and deletes.
. "$SCENARIOS/expect.sh"
cat >s3cfg <<config
[default]
access_key = $AWS_ACCESS_KEY_ID
secret_key = $AWS_SECRET_ACCESS_KEY
host_base = ${ENDPOINT#http://}
host_bucket = ${ENDPOINT#http://}
use_https = False
config
s3() { s3cmd -c s3cfg --no-progress "$@"; }
b=s3://$BUCKET

s3 put --mime-type=text/x-notes --add-header='Cache-Control: max-age=60' --add-header='x-amz-meta-color: blue' files/notes.txt "$b/notes.txt"
info=$(s3 info "$b/notes.txt")
has "$info" "File size: $(stat -c %s files/notes.txt)"
has "$info" 'MIME type: text/x-notes'
has "$info" "MD5 sum:   $(md5sum <files/notes.txt | cut -d ' ' -f 1)"
has "$info" 'x-amz-meta-color: blue'
s3 get "$b/notes.txt" notes
cmp notes files/notes.txt

# Parts of 5 MiB, compared by their attributes.
s3 put --multipart-chunk-size-mb=5 files/big.bin "$b/big.bin"
s3 get "$b/big.bin" big
cmp big files/big.bin
is "$(s3 multipart "$b" | grep -c 's3://.*big' || true)" 0

s3 sync --multipart-chunk-size-mb=5 files/ "$b/site/"
is "$(s3 sync --multipart-chunk-size-mb=5 files/ "$b/site/" | grep -c upload: || true)" 0
echo more >>files/notes.txt
rm 'files/Größe 1.bin'
output=$(s3 sync --delete-removed --multipart-chunk-size-mb=5 files/ "$b/site/")
has "$output" "upload: 'files/notes.txt'"
has "$output" "delete: '$b/site/Größe 1.bin'"
mkdir back
s3 sync "$b/site/" back/
diff -r files back
is "$(s3 ls -r "$b/site/" | wc -l)" "$(find files -type f | wc -l)"
has "$(s3 ls "$b/site/")" "DIR  $b/site/folder/"
is "$(s3 du "$b/site/" | awk '{ print $1 }')" "$(find files -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')"

s3 cp "$b/notes.txt" "$b/copied & moved.txt"
has "$(s3 info "$b/copied & moved.txt")" 'x-amz-meta-color: blue'
s3 mv "$b/copied & moved.txt" "$b/moved.txt"
s3 modify --add-header='x-amz-meta-color: red' --mime-type=text/plain "$b/moved.txt"
has "$(s3 info "$b/moved.txt")" 'x-amz-meta-color: red'
s3 setacl --acl-public "$b/moved.txt"
has "$(s3 info "$b/moved.txt")" 'anon'
s3 setacl --acl-private "$b/moved.txt"
is "$(s3 info "$b/moved.txt" | grep -c anon || true)" 0
curl -sS --fail "$(s3 signurl "$b/big.bin" +600)" | cmp - files/big.bin
refuses 'does not exist' s3 get "$b/nothing" nothing
refuses '(NoSuchBucket)' s3 ls "$b-none"
refuses '(SignatureDoesNotMatch)' s3 --secret_key=wrong ls "$b"

s3 mb "$b-2"
s3 put files/notes.txt "$b-2/notes.txt"
has "$(s3 ls)" "$b-2"
refuses '(BucketNotEmpty)' s3 rb "$b-2"
s3 del "$b-2/notes.txt"
s3 rb "$b-2"
s3 del --recursive --force "$b/"
is "$(s3 ls -r "$b")" ''
