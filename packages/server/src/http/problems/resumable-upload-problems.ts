import type { ProblemKinds } from './problem-kind.ts'

/** Problems of the tus protocol. */
export const resumableUploadProblems = {
  'upload-unknown': {
    status: 404,
    title: 'The upload does not exist',
    cause: 'No upload has this id, or it was deleted, has expired or belongs to another bucket.',
    cure: 'Create a new upload with `POST /api/uploads`.',
  },
  'upload-malformed': {
    status: 400,
    title: 'The headers of the upload are malformed',
    cause: 'A header of the tus protocol is missing or malformed.',
    cure: 'Use a tus 1.0.0 client; `detail` names the header.',
  },
  'upload-version-unsupported': {
    status: 412,
    title: 'The tus version is not supported',
    cause: 'The request has no `Tus-Resumable` header, or names a version that the service does not support.',
    cure: 'Send `Tus-Resumable: 1.0.0`; `Tus-Version` lists the supported versions.',
  },
  'upload-type-unsupported': {
    status: 415,
    title: 'The content type is not that of a chunk',
    cause: 'A chunk of a resumable upload has another content type than the tus protocol requires.',
    cure: 'Send `Content-Type: application/offset+octet-stream`.',
  },
  'upload-offset-conflict': {
    status: 409,
    title: 'The offset does not match',
    cause: '`Upload-Offset` is not the offset of the upload, or another request has interrupted this one.',
    cure: 'Get the current offset with `HEAD` and continue from there.',
  },
  'checksum-malformed': {
    status: 400,
    title: 'The checksum is malformed',
    cause:
      '`Upload-Checksum` names an unsupported algorithm, or its value is not the Base64 of a checksum of that algorithm.',
    cure: 'Send `sha1` or `sha256`, a space and the Base64 of the checksum; `OPTIONS /api/uploads` lists the algorithms.',
  },
  'checksum-mismatch': {
    status: 460,
    title: 'The checksum does not match',
    cause: 'The received bytes do not have the checksum in `Upload-Checksum`. They were discarded.',
    cure: 'Send the chunk again from the same offset.',
  },
} satisfies ProblemKinds
