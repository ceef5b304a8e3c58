import type { ProblemKinds } from './problem-kind.ts'

/**
 * Problems of uploads in one request. `upload-incomplete`, `content-coding-unsupported`, `file-too-large`, `quota-exceeded`
 * and `storage-full` apply to resumable uploads too.
 */
export const uploadProblems = {
  'form-malformed': {
    status: 400,
    title: 'The form is malformed',
    cause: 'The body is not valid multipart/form-data. Nothing was stored.',
    cure: 'Use a library or `curl -F` to build the form, and do not set its Content-Type by hand.',
  },
  'form-without-file': {
    status: 400,
    title: 'The form has no file',
    cause: 'No part of the form is a file. Nothing was stored.',
    cure: 'Give at least one part a filename, as `curl -F file=@photo.jpg` does.',
  },
  'upload-incomplete': {
    status: 400,
    title: 'The upload ended early',
    cause: 'The connection or the form ended before the whole body had arrived. Nothing was stored.',
    cure: 'Send the upload again.',
  },
  'filename-malformed': {
    status: 400,
    title: 'The Content-Disposition header is malformed',
    cause: 'The header does not follow RFC 6266. Nothing was stored.',
    cure: 'Send `Content-Disposition: attachment; filename="name.ext"`, or leave the header out.',
  },
  'file-unreadable': {
    status: 422,
    title: 'The metadata of the file cannot be removed',
    cause:
      'The bucket removes metadata from pictures and videos, and this file is damaged or of a form that the service does not know, or it would not show the same afterwards. Nothing was stored.',
    cure: 'Save the file again with another program, or upload it to a bucket that does not remove metadata.',
  },
  'content-coding-unsupported': {
    status: 415,
    title: 'The content coding is not supported',
    cause: 'The body has a `Content-Encoding`; the service stores bytes exactly as they are sent.',
    cure: 'Send the file itself, without `Content-Encoding`.',
  },
  'file-too-large': {
    status: 413,
    title: 'The file is too large',
    cause: 'The file has more bytes than `MEDIABUCKET_MAX_FILE_SIZE` allows. Nothing was stored.',
    cure: 'Send a smaller file, or ask the operator to raise the limit.',
  },
  'parts-too-many': {
    status: 413,
    title: 'The form has too many parts',
    cause: 'The form has more than 1,000 parts. Nothing was stored.',
    cure: 'Send the files in several requests.',
  },
  'idempotency-key-malformed': {
    status: 400,
    title: 'The Idempotency-Key is malformed',
    cause: 'The header is repeated, empty or too long, or contains characters that a key cannot have.',
    cure: 'Send one `Idempotency-Key` for each upload, such as a UUID, with or without quotes.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'The Idempotency-Key was used for another upload',
    cause: 'An earlier request with this token and key had other files, names or types. Nothing was stored.',
    cure: 'Use a new key for a new upload; repeat a key only with identical content.',
  },
  'quota-exceeded': {
    status: 507,
    title: 'The bucket is full',
    cause: 'The upload does not fit into the remaining quota of the bucket. Nothing was stored.',
    cure: 'Delete items, or ask the operator to raise the quota: `mediabucket bucket set NAME --max-items N --max-bytes SIZE`.',
  },
  'storage-full': {
    status: 507,
    title: 'The storage is full',
    cause: 'The disk has no space for this upload. Nothing was stored.',
    cure: 'Delete items or enlarge the disk, then send the upload again.',
  },
} satisfies ProblemKinds
