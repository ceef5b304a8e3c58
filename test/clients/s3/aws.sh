# The aws command line: cp, sync, ls, mv, rm, presign and the calls below them.
. "$SCENARIOS/expect.sh"
export AWS_CONFIG_FILE="$PWD/config" AWS_PAGER='' AWS_MAX_ATTEMPTS=1 AWS_EC2_METADATA_DISABLED=true
printf '[default]\ns3 =\n  multipart_threshold = 8MB\n  multipart_chunksize = 5MB\n' >config
s3() { /usr/bin/aws --endpoint-url "$ENDPOINT" s3 "$@"; }
api() { command=$1; shift; /usr/bin/aws --endpoint-url "$ENDPOINT" s3api "$command" --bucket "$BUCKET" "$@"; }
# The errors of a gateway of 2021 have no message, at which the program fails itself.
fails() {
  if [ -z "$OLD_GATEWAY" ]; then
    refuses "$@"
  else
    shift
    ! "$@" 2>errors
  fi
}
b=s3://$BUCKET

s3 cp --no-progress files/big.bin "$b/big.bin"
s3 cp --no-progress "$b/big.bin" big
cmp big files/big.bin
is "$(api head-object --key big.bin --query ContentLength)" "$(stat -c %s files/big.bin)"
[ -n "$OLD_GATEWAY" ] || is "$(api head-object --key big.bin --part-number 2 --query '[PartsCount,ContentLength]' --output text)" '4	5242880'
cat files/big.bin | s3 cp - "$b/stream.bin"
s3 cp "$b/stream.bin" - | cmp - files/big.bin

s3 sync --no-progress files "$b/site"
is "$(s3 sync --no-progress files "$b/site")" ''
is "$(s3 ls --recursive "$b/site" | wc -l)" "$(find files -type f | wc -l)"
has "$(s3 ls "$b/site/")" 'PRE folder/'
has "$(s3 ls --summarize --recursive "$b/site")" "Total Size: $(find files -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')"
rm 'files/Größe 1.bin'
s3 sync --no-progress --delete files "$b/site"
s3 sync --no-progress "$b/site" back
diff -r files back
is "$(api list-objects-v2 --prefix site/ --delimiter / --query 'CommonPrefixes[].Prefix' --output text)" 'site/folder/'
is "$(api list-objects-v2 --prefix site/ --page-size 2 --query 'length(Contents)')" "$(find files -type f | wc -l)"
is "$(api list-objects --prefix site/notes --query 'Contents[].Key' --output text)" 'site/notes.txt'

# Headers, metadata, conditions and checksums.
api put-object --key headers.txt --body files/notes.txt --content-type text/x-notes --cache-control max-age=60 \
  --content-disposition 'attachment; filename="notes.txt"' --metadata color=blue --checksum-algorithm SHA256 >put.json
sha256=$(openssl dgst -sha256 -binary files/notes.txt | base64)
[ -n "$OLD_GATEWAY" ] || is "$(jq -r .ChecksumSHA256 put.json)" "$sha256"
is "$(api head-object --key headers.txt --query '[ContentType,CacheControl,ContentDisposition,Metadata.color]' --output text)" \
  'text/x-notes	max-age=60	attachment; filename="notes.txt"	blue'
[ -n "$OLD_GATEWAY" ] || is "$(api get-object-attributes --key headers.txt --object-attributes Checksum ObjectSize --query '[Checksum.ChecksumSHA256,ObjectSize]' --output text)" \
  "$sha256	$(stat -c %s files/notes.txt)"
etag=$(jq -r .ETag put.json)
fails '(304)' api get-object --key headers.txt --if-none-match "$etag" got
fails '(PreconditionFailed)' api get-object --key headers.txt --if-match '"other"' got
api get-object --key headers.txt --range bytes=2-5 --if-match "$etag" got >got.json
is "$(cat got)" "$(head -c 6 files/notes.txt | tail -c 4)"
is "$(jq -r .ContentRange got.json)" "bytes 2-5/$(stat -c %s files/notes.txt)"
fails '(InvalidRange)' api get-object --key headers.txt --range bytes=100000- got
fails '(BadDigest)' api put-object --key refused.txt --body files/notes.txt --content-md5 "$(printf other | openssl dgst -md5 -binary | base64)"
fails '(404)' api head-object --key refused.txt

# Copies, ACLs and signed URLs.
api copy-object --key copied.txt --copy-source "$BUCKET/headers.txt" >copied.json
is "$(api head-object --key copied.txt --query Metadata.color --output text)" 'blue'
api copy-object --key copied.txt --copy-source "$BUCKET/copied.txt" --metadata-directive REPLACE --metadata color=red --content-type text/plain >copied.json
is "$(api head-object --key copied.txt --query '[Metadata.color,ContentType]' --output text)" 'red	text/plain'
fails '(InvalidRequest)' api copy-object --key copied.txt --copy-source "$BUCKET/copied.txt"
s3 mv --no-progress "$b/big.bin" "$b/moved/big.bin"
curl -sS --fail "$(s3 presign "$b/moved/big.bin")" | cmp - files/big.bin
api put-object-acl --key copied.txt --acl public-read
has "$(api get-object-acl --key copied.txt --query 'Grants[].[Grantee.URI,Permission]' --output text)" 'http://acs.amazonaws.com/groups/global/AllUsers	READ'
api put-object-acl --key copied.txt --acl private
is "$(api get-object-acl --key copied.txt --query 'length(Grants)')" 1

# Multipart uploads in steps.
id=$(api create-multipart-upload --key steps.bin --metadata color=green --query UploadId --output text)
is "$(api list-multipart-uploads --query 'Uploads[].[Key,UploadId]' --output text)" "steps.bin	$id"
head -c 5242880 files/big.bin >first
first=$(api upload-part --key steps.bin --upload-id "$id" --part-number 1 --body first --query ETag --output text)
second=$(api upload-part-copy --key steps.bin --upload-id "$id" --part-number 2 --copy-source "$BUCKET/moved/big.bin" --copy-source-range bytes=5242880-6000000 --query CopyPartResult.ETag --output text)
is "$(api list-parts --key steps.bin --upload-id "$id" --query 'Parts[].[PartNumber,Size]' --output text)" '1	5242880
2	757121'
fails '(InvalidPart)' api complete-multipart-upload --key steps.bin --upload-id "$id" --multipart-upload "Parts=[{PartNumber=1,ETag=$second}]"
api complete-multipart-upload --key steps.bin --upload-id "$id" --multipart-upload "Parts=[{PartNumber=1,ETag=$first},{PartNumber=2,ETag=$second}]" >complete.json
[ -n "$OLD_GATEWAY" ] || has "$(jq -r .ETag complete.json)" '-2'
s3 cp --no-progress "$b/steps.bin" steps
head -c 6000001 files/big.bin | cmp - steps
is "$(api head-object --key steps.bin --query Metadata.color --output text)" 'green'
id=$(api create-multipart-upload --key aborted.bin --query UploadId --output text)
api upload-part --key aborted.bin --upload-id "$id" --part-number 1 --body files/notes.txt >part.json
api abort-multipart-upload --key aborted.bin --upload-id "$id"
fails '(NoSuchUpload)' api list-parts --key aborted.bin --upload-id "$id"

# Deletes, buckets and errors.
api delete-objects --delete 'Objects=[{Key=copied.txt},{Key=steps.bin},{Key=nothing}]' --query 'Deleted[].Key' --output text >deleted
is "$(tr '\t' '\n' <deleted | sort | tr '\n' ' ')" 'copied.txt nothing steps.bin '
fails '(NoSuchKey)' api get-object --key copied.txt got
AWS_SECRET_ACCESS_KEY=wrong fails '(SignatureDoesNotMatch)' api list-objects-v2
AWS_ACCESS_KEY_ID=wrong fails '(InvalidAccessKeyId)' api list-objects-v2
s3 rm --recursive "$b" >removed
is "$(s3 ls "$b")" ''
s3 mb "$b-2"
s3 cp --no-progress files/notes.txt "$b-2/notes.txt"
has "$(s3 ls)" "$BUCKET-2"
fails '(BucketNotEmpty)' s3 rb "$b-2"
s3 rb --force "$b-2"
fails '(NoSuchBucket)' s3 ls "$b-2"
