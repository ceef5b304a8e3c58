import { Type } from 'typebox'
import { exampleBase, type OperationDescription } from '../openapi/operation-description.ts'
import type { ResponseHeader } from '../openapi/response-headers.ts'
import { UploadParams } from '../openapi/schemas.ts'

const progress: readonly ResponseHeader[] = [
  'Tus-Resumable',
  'Upload-Offset',
  'Upload-Expires',
  'Content-Location',
  'Cache-Control',
]
const piece = {
  description: 'The bytes that follow the offset.',
  content: {
    'application/offset+octet-stream': { schema: Type.String({ format: 'binary' }) },
  },
}
const perRequest = ['upload-malformed', 'upload-version-unsupported'] as const
const perPiece = [
  ...perRequest,
  'upload-incomplete',
  'file-too-large',
  'content-coding-unsupported',
  'checksum-malformed',
  'checksum-mismatch',
  'quota-exceeded',
  'storage-full',
] as const
const curl = `curl -H "Authorization: Bearer $TOKEN" -H 'Tus-Resumable: 1.0.0'`
const example = `${exampleBase}/api/uploads/7m2k9x4c1v8q0h3r5wnp6tzjya`
const problemHeaders: readonly ResponseHeader[] = ['Tus-Resumable', 'Tus-Version', 'Allow']
const shared = { tag: 'Upload', needs: 'media:write', problemHeaders } as const

export const createUpload: OperationDescription = {
  ...shared,
  operationId: 'createUpload',
  summary: 'Begin an upload in pieces',
  description: `The creation of the tus protocol, version 1.0.0: for large files and for connections that break. Any tus client
does it. The \`filename\` and the \`filetype\` of \`Upload-Metadata\` are the name and the declared type of the item. A body of the
type \`application/offset+octet-stream\` is the first piece.`,
  rules: 'R1 to R13',
  headers: ['Tus-Resumable', 'Upload-Length', 'Upload-Defer-Length', 'Upload-Metadata', 'Upload-Checksum'],
  body: piece,
  responses: {
    201: { description: 'Begun; `Location` is where to go on.', headers: ['Location', ...progress] },
  },
  problems: perPiece,
  curl: `${curl} -H 'Upload-Length: 48213' -X POST ${exampleBase}/api/uploads`,
}

export const findUpload: OperationDescription = {
  ...shared,
  operationId: 'findUpload',
  summary: 'Ask where an upload stands',
  description:
    'How much has arrived. Never more is told than is synced to disk; with the last byte the item exists, and `Content-Location` names it.',
  rules: 'R3, R5 and R6',
  path: UploadParams,
  headers: ['Tus-Resumable'],
  responses: {
    200: {
      description: 'The upload.',
      headers: [...progress, 'Upload-Length', 'Upload-Defer-Length', 'Upload-Metadata'],
    },
  },
  problems: [...perRequest, 'upload-unknown'],
  head: true,
  curl: `${curl} -I ${example}`,
}

export const appendUpload: OperationDescription = {
  ...shared,
  operationId: 'appendUpload',
  summary: 'Send a piece',
  description:
    'What arrives counts once it is synced, also where the connection breaks. With `Upload-Checksum` a piece counts whole or not at all.',
  rules: 'R4 to R7',
  path: UploadParams,
  headers: ['Tus-Resumable', 'Upload-Offset', 'Upload-Checksum', 'Upload-Length'],
  body: piece,
  responses: { 204: { description: 'Arrived and synced.', headers: progress } },
  problems: [...perPiece, 'upload-unknown', 'upload-type-unsupported', 'upload-offset-conflict'],
  curl: `${curl} -H 'Upload-Offset: 0' -H 'Content-Type: application/offset+octet-stream' -X PATCH --data-binary @harbour.jpg ${example}`,
}

export const removeUpload: OperationDescription = {
  ...shared,
  operationId: 'removeUpload',
  summary: 'End an upload',
  description:
    'What has arrived goes, and what it has reserved is free. A finished upload takes its item along, for which the token needs `media:delete`.',
  rules: 'R9',
  path: UploadParams,
  headers: ['Tus-Resumable'],
  responses: { 204: { description: 'Gone.', headers: ['Tus-Resumable', 'Cache-Control'] } },
  problems: [...perRequest, 'upload-unknown'],
  curl: `${curl} -X DELETE ${example}`,
}

export const overrideUpload: OperationDescription = {
  ...appendUpload,
  operationId: 'overrideUpload',
  summary: 'Send a piece where PATCH does not get through',
  description:
    'For surroundings that know no PATCH or DELETE: the method of `X-HTTP-Method-Override` is what counts, and what it needs is needed.',
  rules: 'R13',
  headers: [...(appendUpload.headers ?? []), 'X-HTTP-Method-Override'],
  problems: [...appendUpload.problems, 'method-not-allowed'],
  curl: `${curl} -H 'X-HTTP-Method-Override: DELETE' -X POST ${example}`,
}
