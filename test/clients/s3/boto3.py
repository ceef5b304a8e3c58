"""boto3: transfers in parts, metadata, conditions, lists, copies, signed URLs of both kinds, deletes and errors."""

import hashlib
import io
import os
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

bucket = os.environ["BUCKET"]


def client(**options):
    return boto3.client("s3", endpoint_url=os.environ["ENDPOINT"], region_name="us-east-1", **options)


def refuses(code, call, **parameters):
    try:
        call(**parameters)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
        assert error.response["ResponseMetadata"]["RequestId"], error.response
        return
    raise AssertionError(f"no {code}")


def metadata(response):
    """The metadata that were stored: the service adds the URL of the item."""
    return {name: value for name, value in response["Metadata"].items() if name != "mediabucket-url"}


s3 = client()
big = open("files/big.bin", "rb").read()
parts = TransferConfig(multipart_threshold=5 * 1024 * 1024, multipart_chunksize=5 * 1024 * 1024)

s3.upload_file("files/big.bin", bucket, "big.bin", Config=parts, ExtraArgs={"Metadata": {"color": "blue"}, "ContentType": "video/x-big"})
head = s3.head_object(Bucket=bucket, Key="big.bin")
assert (head["ContentLength"], head["ContentType"], metadata(head)) == (len(big), "video/x-big", {"color": "blue"}), head
pieces = [big[at : at + 5 * 1024 * 1024] for at in range(0, len(big), 5 * 1024 * 1024)]
digest = hashlib.md5(b"".join(hashlib.md5(piece).digest() for piece in pieces)).hexdigest()
assert head["ETag"] == f'"{digest}-{len(pieces)}"', head
got = io.BytesIO()
s3.download_fileobj(bucket, "big.bin", got, Config=parts)
assert got.getvalue() == big

# Single puts: MD5 as ETag, headers, metadata beyond ASCII is refused by boto3 itself.
body = open("files/notes.txt", "rb").read()
put = s3.put_object(
    Bucket=bucket,
    Key="notes/Größe & so+on ?#%.txt",
    Body=body,
    ContentType="text/plain; charset=utf-8",
    CacheControl="max-age=60",
    ContentDisposition='inline; filename="a.txt"',
    ContentEncoding="identity",
    ContentLanguage="de",
    Expires="Wed, 21 Oct 2026 07:28:00 GMT",
    Metadata={"Color": "blue", "empty": ""},
)
assert put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"', put
got = s3.get_object(Bucket=bucket, Key="notes/Größe & so+on ?#%.txt")
assert got["Body"].read() == body
assert got["ETag"] == put["ETag"]
assert (got["CacheControl"], got["ContentDisposition"], got["ContentLanguage"]) == ("max-age=60", 'inline; filename="a.txt"', "de"), got
assert metadata(got) == {"color": "blue", "empty": ""}, got["Metadata"]
assert got["ResponseMetadata"]["HTTPHeaders"]["expires"] == "Wed, 21 Oct 2026 07:28:00 GMT", got
overridden = s3.get_object(Bucket=bucket, Key="big.bin", Range="bytes=-10", ResponseContentType="text/x-other", ResponseCacheControl="no-store")
assert overridden["Body"].read() == big[-10:]
assert (overridden["ContentType"], overridden["CacheControl"]) == ("text/x-other", "no-store"), overridden
assert overridden["ContentRange"] == f"bytes {len(big) - 10}-{len(big) - 1}/{len(big)}", overridden

# Conditions.
key = "notes/Größe & so+on ?#%.txt"
refuses("304", s3.get_object, Bucket=bucket, Key=key, IfNoneMatch=put["ETag"])
refuses("304", s3.get_object, Bucket=bucket, Key=key, IfModifiedSince=got["LastModified"])
refuses("PreconditionFailed", s3.get_object, Bucket=bucket, Key=key, IfMatch='"other"')
refuses("PreconditionFailed", s3.get_object, Bucket=bucket, Key=key, IfUnmodifiedSince="2020-01-01T00:00:00Z")

# Lists, with keys whose order is that of bytes.
# A space and a plus sign: the first page of this kind in a gateway of 2021 has them alike.
name = "a b&c<d>\"'" if os.environ["OLD_GATEWAY"] else "a b+c&d<e>\"'"
keys = sorted([f"list/{name}" for name in ["a", "a/b", "a/c", "ab", "b/1/x", "b/2/y", "é", "Z", "日本", "~", name]], key=lambda name: name.encode())
for name in keys:
    s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
for operation in ["list_objects_v2", "list_objects"]:
    pages = list(s3.get_paginator(operation).paginate(Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 3}))
    assert [row["Key"] for page in pages for row in page["Contents"]] == keys, pages
    assert len(pages) == 4, len(pages)
    pages = list(s3.get_paginator(operation).paginate(Bucket=bucket, Prefix="list/", Delimiter="/", PaginationConfig={"PageSize": 2}))
    assert [row["Prefix"] for page in pages for row in page.get("CommonPrefixes", [])] == ["list/a/", "list/b/"], pages
    assert [row["Key"] for page in pages for row in page.get("Contents", [])] == [name for name in keys if "/" not in name[5:]], pages
after = s3.list_objects_v2(Bucket=bucket, Prefix="list/", StartAfter="list/ab", MaxKeys=1, FetchOwner=True)
assert after["Contents"][0]["Key"] == "list/b/1/x" and after["IsTruncated"] and after["KeyCount"] == 1, after
assert after["Contents"][0]["Size"] == len("list/b/1/x") and after["Contents"][0]["Owner"]["ID"], after
assert abs((after["Contents"][0]["LastModified"] - got["LastModified"]).total_seconds()) < 600, after

# Copies: with their metadata, and onto themselves with other metadata.
s3.copy({"Bucket": bucket, "Key": key}, bucket, "copied.txt")
assert metadata(s3.head_object(Bucket=bucket, Key="copied.txt")) == {"color": "blue", "empty": ""}
s3.copy_object(Bucket=bucket, Key="copied.txt", CopySource={"Bucket": bucket, "Key": "copied.txt"}, MetadataDirective="REPLACE", Metadata={"color": "red"})
assert metadata(s3.head_object(Bucket=bucket, Key="copied.txt")) == {"color": "red"}
s3.copy({"Bucket": bucket, "Key": "big.bin"}, bucket, "big-copy.bin", Config=parts)
assert s3.get_object(Bucket=bucket, Key="big-copy.bin")["Body"].read() == big
if not os.environ["OLD_GATEWAY"]:
    refuses("PreconditionFailed", s3.copy_object, Bucket=bucket, Key="no.txt", CopySource={"Bucket": bucket, "Key": "copied.txt"}, CopySourceIfMatch='"other"')

# Signed URLs: boto3's default, which is version 2 here, and version 4.
for options in [{"config": Config(signature_version="s3", s3={"addressing_style": "path"})}, {"config": Config(signature_version="s3v4")}]:
    signer = client(**options)
    url = signer.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key, "ResponseContentType": "text/x-signed"}, ExpiresIn=60)
    with urllib.request.urlopen(url) as response:
        assert response.read() == body and response.headers["Content-Type"] == "text/x-signed", response.headers
    url = signer.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "signed.txt", "ContentType": "text/x-put"}, ExpiresIn=60)
    request = urllib.request.Request(url, data=b"signed", method="PUT", headers={"Content-Type": "text/x-put"})
    assert urllib.request.urlopen(request).status == 200
    assert s3.get_object(Bucket=bucket, Key="signed.txt")["Body"].read() == b"signed"
    try:
        urllib.request.urlopen(url.replace("signed.txt", "other.txt"))
        raise AssertionError("a changed URL works")
    except urllib.error.HTTPError as error:
        assert error.code == 403 and b"SignatureDoesNotMatch" in error.read(), error

# Deletes and errors.
deleted = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "copied.txt"}, {"Key": "nothing"}]})
assert sorted(row["Key"] for row in deleted["Deleted"]) == ["copied.txt", "nothing"] and "Errors" not in deleted, deleted
assert "Deleted" not in s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "signed.txt"}], "Quiet": True})
refuses("NoSuchKey", s3.get_object, Bucket=bucket, Key="copied.txt")
refuses("404", s3.head_object, Bucket=bucket, Key="signed.txt")
refuses("NoSuchBucket", s3.list_objects_v2, Bucket=f"{bucket}-none")
refuses("SignatureDoesNotMatch", client(aws_secret_access_key="wrong", aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"]).list_objects_v2, Bucket=bucket)
refuses("InvalidAccessKeyId", client(aws_secret_access_key="wrong", aws_access_key_id="wrong").list_buckets)
resource = boto3.resource("s3", endpoint_url=os.environ["ENDPOINT"])
other = resource.create_bucket(Bucket=f"{bucket}-2")
other.put_object(Key="a", Body=b"a")
assert f"{bucket}-2" in [row.name for row in resource.buckets.all()]
refuses("BucketNotEmpty", other.delete)
other.objects.all().delete()
other.delete()
refuses("404", s3.head_bucket, Bucket=f"{bucket}-2")
resource.Bucket(bucket).objects.all().delete()
assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
