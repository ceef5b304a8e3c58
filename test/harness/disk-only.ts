/**
 * Tests that are about SQLite or the disk only, and why. `MEDIABUCKET_TEST_ENGINES` leaves them out. `test` is a part of the title; without
 * it, the whole file is meant.
 */
export const diskOnly: readonly { readonly file: string; readonly test?: string; readonly reason: string }[] =
  [
    { file: 'test/http/bytes-on-disk.test.ts', reason: 'changes files below blobs/' },
    {
      file: 'test/http/cached-bytes.test.ts',
      reason: 'removes and damages files below blobs/; bytes of a store pass through the same responder',
    },
    {
      file: 'test/http/inline-storage.test.ts',
      reason: 'small files are in the catalog, where the servers of these tests store none',
    },
    { file: 'test/http/s3-multipart.test.ts', test: 'MU11', reason: 'damages files below blobs/' },
    {
      file: 'test/http/small-uploads.test.ts',
      test: 'S9 are stored in the catalog while many clients',
      reason: 'small files are in the catalog, where the servers of these tests store none',
    },
    {
      file: 'test/http/url-uploads.test.ts',
      test: 'FU5 a client that closes its connection',
      reason: 'waits for a temporary file',
    },
    {
      file: 'test/http/url-uploads.test.ts',
      test: 'FU4, S2 a stop ends an upload from a URL',
      reason: 'waits for a temporary file',
    },
    {
      file: 'test/http/problems.test.ts',
      test: 'bytes-missing has the status 500',
      reason: 'removes a file below blobs/',
    },
    {
      file: 'test/http/problems.test.ts',
      test: 'internal has the status 500',
      reason: 'replaces blobs/ by a file',
    },
    {
      file: 'test/http/problems.test.ts',
      test: 'P3 the response to an unexpected error has no details',
      reason: 'reads the log of the test before it',
    },
    {
      file: 'test/http/tus-limits.test.ts',
      test: 'R10 a malformed id gets a 404 problem and reaches no file',
      reason: 'lists uploads/ and the data directory',
    },
    {
      file: 'test/http/tus-requirements.test.ts',
      test: 'The Server SHOULD always attempt to store as much of the received data as possible.',
      reason: 'waits for the size of a file below uploads/',
    },
    {
      file: 'test/e2e/many-uploads.test.ts',
      test: 'G11 2,000 small files take 20 requests',
      reason: 'its time limit is for files in the catalog, not for 2,000 requests to a gateway',
    },
    {
      file: 'test/http/slow-clients.test.ts',
      test: 'N6 many clients that read nothing use a limited amount of memory',
      reason: 'its 200 downloads are requests that a gateway of one core holds open',
    },
    {
      file: 'test/http/slow-readers.test.ts',
      test: 'O4, B1 clients that stop reading are disconnected when idle',
      reason: 'counts open files',
    },
    {
      file: 'test/http/slow-readers.test.ts',
      test: 'B9 a file that is truncated while it is read',
      reason: 'truncates a file below blobs/',
    },
    {
      file: 'test/http/token-secrecy.test.ts',
      test: 'A8 only the SHA-256 of a token is stored',
      reason: 'reads the tables of catalog.db',
    },
    {
      file: 'test/http/tus-checksum.test.ts',
      test: 'of an interrupted chunk: no byte of it is stored',
      reason: 'waits for the size of a file below uploads/',
    },
    {
      file: 'test/http/tus-concurrent.test.ts',
      test: 'R4 tus-js-client without retries is not interrupted by HEAD',
      reason: 'waits for the size of a file below uploads/',
    },
    {
      file: 'test/http/tus-crash.test.ts',
      test: 'R6 SIGTERM stores the received bytes',
      reason: 'waits for the size of a file below uploads/',
    },
    {
      file: 'test/http/tus-crash.test.ts',
      test: 'R6 a start repairs files that are longer or shorter',
      reason: 'changes files below uploads/',
    },
    {
      file: 'test/http/tus-crash.test.ts',
      test: 'R8 an upload expires, and its reserved bytes are released',
      reason: 'waits until uploads/ is empty',
    },
    {
      file: 'test/http/tus-ending.test.ts',
      test: 'removes the received bytes',
      reason: 'lists uploads/',
    },
    {
      file: 'test/http/upload-aborted.test.ts',
      reason: 'waits for files below tmp/',
    },
    {
      file: 'test/http/upload-deadlines.test.ts',
      test: 'becomes idle is aborted, and nothing of it is stored',
      reason: 'waits for a file below tmp/',
    },
    {
      file: 'test/http/upload-deadlines.test.ts',
      test: 'U12, O4 a client that waits for the service is not idle',
      reason: 'locks catalog.db',
    },
    {
      file: 'test/http/variant-sizes.test.ts',
      test: 'also of sizes that were removed from the list',
      reason: 'reads variants/; the contract of variants covers S3',
    },
    {
      file: 'test/http/variants-rendering.test.ts',
      test: 'and the variant is stored for later starts',
      reason: 'reads variants.db',
    },
    {
      file: 'test/http/variants-rendering.test.ts',
      test: 'V7 deleting an item removes its variants at once, also from the disk',
      reason: 'reads variants.db',
    },
    {
      file: 'test/http/variants-rendering.test.ts',
      test: 'V5 with MEDIABUCKET_INLINE_SIZE=0 all variants are files',
      reason: 'reads variants.db and variants/',
    },
    {
      file: 'test/http/variants-rendering.test.ts',
      test: 'V5 a start with a damaged variants.db',
      reason: 'damages variants.db',
    },
    {
      file: 'test/http/variants-rendering.test.ts',
      test: 'V7 an item that is deleted while its variants are rendered',
      reason: 'reads variants.db at its end',
    },
    {
      file: 'test/http/variants-rendering.test.ts',
      test: 'V7, B9, F3 if the bytes of an item are damaged or missing',
      reason: 'changes files below blobs/',
    },
  ]
