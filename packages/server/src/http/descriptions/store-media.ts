import { Type } from 'typebox'
import { type Description, exampleBase } from '../openapi/description.ts'
import { otherMedia, sampleMedia } from '../openapi/samples.ts'
import { MediaList, MediaObject } from '../schemas.ts'

/** A file part may have any name. */
const Form = Type.Object(
  {
    file: Type.Array(Type.String({ format: 'binary' }), {
      description: 'One file or many.',
    }),
  },
  {
    additionalProperties: true,
    description:
      'Every part with a filename is a file; fields are ignored. A malformed or ambiguous form is refused.',
  },
)

export const storeMedia: Description = {
  operationId: 'storeMedia',
  tag: 'Upload',
  summary: 'Upload one file or many',
  description: `Either a form, every file part of which is stored, all of them or none; or any other body, which is one file as it
is: its type is \`Content-Type\`, its name the \`filename\` of \`Content-Disposition\`. A 201 means that bytes and rows are synced to disk.

The stored type is the one that the bytes show. Where they show none, it is the declared type, or that of the name's extension
where none is declared.

An \`Idempotency-Key\` makes it safe to send an upload again whose answer was lost.`,
  rules: 'U1 to U12, I1 to I5',
  needs: 'media:write',
  headers: ['Content-Disposition', 'Idempotency-Key', 'Expect'],
  body: {
    description: 'The files. A `Content-Encoding` is refused: bytes are kept exactly as they are sent.',
    content: { 'multipart/form-data': { schema: Form }, '*/*': {} },
  },
  answers: {
    201: {
      description:
        'Stored. One file answers its media object and `Location`; several answer a list in the order sent.',
      headers: ['Location', 'Cache-Control'],
      content: {
        'application/json': {
          schema: Type.Union([MediaObject, MediaList]),
          examples: { 'one file': sampleMedia, 'several files': { data: [sampleMedia, otherMedia] } },
        },
      },
    },
  },
  problems: [
    'form-malformed',
    'form-without-file',
    'upload-incomplete',
    'filename-malformed',
    'file-too-large',
    'parts-too-many',
    'content-coding-unsupported',
    'idempotency-key-malformed',
    'idempotency-key-reused',
    'quota-exceeded',
    'storage-full',
  ],
  curl: `curl -H "Authorization: Bearer $TOKEN" -F file=@harbour.jpg ${exampleBase}/api/media`,
}
