import { Type } from 'typebox'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { otherItem, sampleItem } from '../http/openapi/samples.ts'
import { MediaList, MediaObject } from '../http/openapi/schemas.ts'

/** The form in the OpenAPI document; a file part may have any name. */
const Form = Type.Object(
  {
    labels: Type.Optional(
      Type.String({
        description: 'The labels of the files: a JSON object. It stands before the files (U14).',
      }),
    ),
    focus: Type.Optional(
      Type.String({
        description:
          'The point of the pictures that sizes keep that cut: `0.3,0.5`, or a JSON object with `x` and `y`. It stands before the files (M11).',
      }),
    ),
    file: Type.Array(Type.String({ format: 'binary' }), {
      description: 'One or more files.',
    }),
  },
  {
    additionalProperties: true,
    description:
      'Every part with a filename is a file; fields besides `labels` and `focus` are ignored. Malformed and ambiguous forms are refused.',
  },
)

export const storeMedia: OperationDescription = {
  operationId: 'storeMedia',
  tag: 'Upload',
  summary: 'Upload files',
  description: `The body is a form, whose file parts are all stored or none, or any other body, which is stored as one file: its type
is \`Content-Type\`, its name the \`filename\` of \`Content-Disposition\`. A 201 means that bytes and rows are synced to disk. The stored type is that
of the bytes, if they show one.

With an \`Idempotency-Key\` an upload can be sent again safely after its response was lost.`,
  rules: 'U1 to U15, I1 to I5, M11',
  needs: 'media:write',
  headers: [
    ...(['Content-Disposition', 'Idempotency-Key', 'Mediabucket-Expires-At', 'Mediabucket-Labels'] as const),
    'Mediabucket-Focus',
    'Expect',
  ],
  body: {
    description:
      'The files as a form. A body of any other type is one file, which is not described here. A `Content-Encoding` is refused, because bytes are stored exactly as they are sent.',
    // A second type, for raw bodies, makes generators of clients send neither.
    content: { 'multipart/form-data': { schema: Form } },
  },
  responses: {
    201: {
      description:
        'Stored. One file returns its media object and `Location`, several files a list in the order sent.',
      headers: ['Location', 'Cache-Control'],
      content: {
        'application/json': {
          schema: Type.Union([MediaObject, MediaList]),
          examples: { 'one file': sampleItem, 'several files': { data: [sampleItem, otherItem] } },
        },
      },
    },
  },
  problems: [
    'form-malformed',
    'form-without-file',
    'upload-incomplete',
    'filename-malformed',
    'file-unreadable',
    'file-too-large',
    'parts-too-many',
    'content-coding-unsupported',
    'idempotency-key-malformed',
    'idempotency-key-reused',
    'quota-exceeded',
    'token-limit-exceeded',
    'type-refused',
    'file-refused',
    'scanner-unavailable',
    'storage-full',
  ],
  curl: `curl -H "Authorization: Bearer $TOKEN" -F file=@harbour.jpg ${exampleBase}/api/media`,
}
