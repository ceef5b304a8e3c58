import { Type } from 'typebox'
import { exampleBase, type OperationDescription, type ResponseHeader } from '../http/openapi/description.ts'
import { UploadParams } from '../http/openapi/parameters.ts'

const progress: readonly ResponseHeader[] = [
  'Tus-Resumable',
  'Upload-Offset',
  'Upload-Expires',
  'Content-Location',
  'Cache-Control',
]

const chunk = {
  description: 'The bytes that follow the offset.',
  content: {
    'application/offset+octet-stream': { schema: Type.String({ format: 'binary' }) },
  },
}

const sharedProblems = ['upload-malformed', 'upload-version-unsupported'] as const

const chunkProblems = [
  ...sharedProblems,
  'upload-incomplete',
  'file-unreadable',
  'file-too-large',
  'content-coding-unsupported',
  'checksum-malformed',
  'checksum-mismatch',
  'quota-exceeded',
  'token-limit-exceeded',
  'type-refused',
  'file-refused',
  'scanner-unavailable',
  'storage-full',
] as const

const curl = `curl -H "Authorization: Bearer $TOKEN" -H 'Tus-Resumable: 1.0.0'`

const example = `${exampleBase}/api/uploads/7m2k9x4c1v8q0h3r5wnp6tzjya`

const problemHeaders: readonly ResponseHeader[] = ['Tus-Resumable', 'Tus-Version', 'Allow']

const shared = { tag: 'Upload', needs: 'media:write', problemHeaders } as const

export const createUpload: OperationDescription = {
  ...shared,
  operationId: 'createUpload',
  summary: 'Create a resumable upload',
  description: `The creation of the tus protocol, version 1.0.0: for large files and for connections that break. Any tus client
does it. The \`filename\` and the \`filetype\` of \`Upload-Metadata\` are the name and the declared type of the item. A body of the
type \`application/offset+octet-stream\` is the first chunk.`,
  rules: 'R1 to R13',
  headers: ['Tus-Resumable', 'Upload-Length', 'Upload-Defer-Length', 'Upload-Metadata', 'Upload-Checksum'],
  body: chunk,
  responses: {
    201: { description: 'Created; `Location` is the URL of the upload.', headers: ['Location', ...progress] },
  },
  problems: chunkProblems,
  curl: `${curl} -H 'Upload-Length: 48213' -X POST ${exampleBase}/api/uploads`,
}

export const findUpload: OperationDescription = {
  ...shared,
  operationId: 'findUpload',
  summary: 'Get the offset of an upload',
  description:
    'The offset includes only bytes that are synced to disk. With the last byte the item exists, and `Content-Location` names it.',
  rules: 'R3, R5 and R6',
  path: UploadParams,
  headers: ['Tus-Resumable'],
  responses: {
    200: {
      description: 'The upload.',
      headers: [...progress, 'Upload-Length', 'Upload-Defer-Length', 'Upload-Metadata'],
    },
  },
  problems: [...sharedProblems, 'upload-unknown'],
  head: true,
  curl: `${curl} -I ${example}`,
}

export const appendUpload: OperationDescription = {
  ...shared,
  operationId: 'appendUpload',
  summary: 'Send a chunk',
  description:
    'Received bytes count once they are synced, even if the connection breaks. With `Upload-Checksum` a chunk counts completely or not at all.',
  rules: 'R4 to R7',
  path: UploadParams,
  headers: ['Tus-Resumable', 'Upload-Offset', 'Upload-Checksum', 'Upload-Length'],
  body: chunk,
  responses: { 204: { description: 'Received and synced.', headers: progress } },
  problems: [...chunkProblems, 'upload-unknown', 'upload-type-unsupported', 'upload-offset-conflict'],
  curl: `${curl} -H 'Upload-Offset: 0' -H 'Content-Type: application/offset+octet-stream' -X PATCH --data-binary @harbour.jpg ${example}`,
}

export const removeUpload: OperationDescription = {
  ...shared,
  operationId: 'removeUpload',
  summary: 'Remove an upload',
  description:
    'The received bytes and the reserved space are freed. With a finished upload its item is deleted too, which requires `media:delete`.',
  rules: 'R9',
  path: UploadParams,
  headers: ['Tus-Resumable'],
  responses: { 204: { description: 'Removed.', headers: ['Tus-Resumable', 'Cache-Control'] } },
  problems: [...sharedProblems, 'upload-unknown'],
  curl: `${curl} -X DELETE ${example}`,
}

export const overrideUpload: OperationDescription = {
  ...appendUpload,
  operationId: 'overrideUpload',
  summary: 'Send a chunk where PATCH is not possible',
  description:
    'For environments without PATCH or DELETE. The request is handled as one with the method of `X-HTTP-Method-Override`, and requires the same scopes.',
  rules: 'R13',
  headers: [...(appendUpload.headers ?? []), 'X-HTTP-Method-Override'],
  problems: [...appendUpload.problems, 'method-not-allowed'],
  curl: `${curl} -H 'X-HTTP-Method-Override: DELETE' -X POST ${example}`,
}
