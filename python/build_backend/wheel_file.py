"""Writes wheels: zip files whose last entry, RECORD, lists the hashes of the other entries."""

import base64
import hashlib
import os
import time
import zipfile

# A fixed date makes equal builds produce equal files. The zip format starts at 1980.
EPOCH = max(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), 315532800)


class WheelFile:
    """Writes one wheel. close() adds the list of hashes and closes the file."""

    def __init__(self, path):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._record = []

    def add(self, name, data, executable=False):
        entry = zipfile.ZipInfo(name, time.gmtime(EPOCH)[:6])
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self, dist_info):
        name = f"{dist_info}/RECORD"
        self.add(name, ("".join(self._record) + f"{name},,\n").encode())
        self._zip.close()
