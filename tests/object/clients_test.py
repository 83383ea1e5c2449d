#!/usr/bin/env python3
"""Checks the fake server with an independent client: boto3. Exits with 77 where there is none."""
import pathlib
import subprocess
import sys

try:
    import boto3
    import botocore.client
    import botocore.exceptions
except ImportError:
    print("skipped: no boto3 for this Python (package python3-boto3)")
    sys.exit(77)

FAKE = pathlib.Path(__file__).with_name("fake_s3.py")


def client(port, secret="fakesecret", style="path"):
    config = botocore.client.Config(s3={"addressing_style": style}, retries={"max_attempts": 0})
    return boto3.client("s3", endpoint_url=f"http://localhost:{port}", aws_access_key_id="FAKEKEY",
                        aws_secret_access_key=secret, region_name="eu-west-1", config=config)


def refused(call, **arguments):
    try:
        call(**arguments)
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"]
    return "accepted"


def main():
    fake = subprocess.Popen([sys.executable, "-B", FAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(fake.stdout.readline())
    s3 = client(port)
    s3.create_bucket(Bucket="b", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    for key in ("plain", "a b/+=*&?\u00e9~!'()"):
        s3.put_object(Bucket="b", Key=key, Body=b"0123456789")
        assert s3.head_object(Bucket="b", Key=key)["ContentLength"] == 10
        got = s3.get_object(Bucket="b", Key=key, Range="bytes=2-5")
        assert (got["Body"].read(), got["ContentRange"]) == (b"2345", "bytes 2-5/10"), got
    assert {one["Key"] for one in s3.list_objects_v2(Bucket="b")["Contents"]} == {"plain", "a b/+=*&?\u00e9~!'()"}

    upload = s3.create_multipart_upload(Bucket="b", Key="big")["UploadId"]
    parts = [bytes([i]) * (5 << 20) for i in range(3)]
    tags = [s3.upload_part(Bucket="b", Key="big", UploadId=upload, PartNumber=i + 1, Body=part)["ETag"]
            for i, part in enumerate(parts)]
    assert refused(s3.get_object, Bucket="b", Key="big") == "NoSuchKey"
    assert len(s3.list_multipart_uploads(Bucket="b")["Uploads"]) == 1
    s3.complete_multipart_upload(Bucket="b", Key="big", UploadId=upload, MultipartUpload={
        "Parts": [{"PartNumber": i + 1, "ETag": tag} for i, tag in enumerate(tags)]})
    assert s3.get_object(Bucket="b", Key="big")["Body"].read() == b"".join(parts)
    other = s3.create_multipart_upload(Bucket="b", Key="big")["UploadId"]
    s3.abort_multipart_upload(Bucket="b", Key="big", UploadId=other)

    assert client(port, style="virtual").get_object(Bucket="b", Key="plain")["Body"].read() == b"0123456789"
    assert refused(client(port, "wrong").get_object, Bucket="b", Key="plain") == "SignatureDoesNotMatch"
    assert refused(s3.get_object, Bucket="nobody", Key="plain") == "NoSuchBucket"
    fake.stdin.write("clock 3600\n")
    fake.stdin.flush()
    fake.stdout.readline()
    assert refused(s3.get_object, Bucket="b", Key="plain") == "RequestTimeTooSkewed"
    fake.stdin.close()
    return fake.wait()


if __name__ == "__main__":
    sys.exit(main())
