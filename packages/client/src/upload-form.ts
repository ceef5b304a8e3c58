import type { CallOptions } from './client-options.ts'
import { filenameParameter } from './content-disposition.ts'
import { type Media, readManyMedia, readMedia } from './media.ts'
import { randomKey } from './random-key.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { send } from './send.ts'
import { type UploadParts, withProgress } from './upload.ts'
import type { UploadProgress } from './upload-body.ts'
import { isBlob, uploadContent } from './upload-content.ts'

/** One file of a form. */
export interface FormFile {
  readonly source: Blob | Uint8Array
  readonly filename: string
  /** The type to declare. Default: that of a Blob; `application/octet-stream` for bytes. */
  readonly contentType?: string | undefined
}

/** The options of an upload of several files. */
export interface UploadAllOptions extends CallOptions {
  /** When the items expire. Default: by the settings of the bucket. */
  readonly expiresAt?: Date | undefined
  /** Reports bytes of the whole form, including part headers. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined
  /** Identifies repeated requests of one upload, for 24 hours. Default: a random key for each call. */
  readonly idempotencyKey?: string | undefined
}

/** Stores several files with one form (docs/interface.md U1, U2, U4). */
export async function uploadForm(
  { settings, endpoints }: UploadParts,
  files: readonly FormFile[],
  { expiresAt, onProgress, signal, idempotencyKey }: UploadAllOptions,
): Promise<readonly Media[]> {
  requireFiles(files)
  if (files.length === 0) return []
  const boundary = `mediabucket-${randomKey()}`
  const content = await uploadContent(formBlob(files, boundary), signal)
  return await send(withProgress(settings, onProgress), {
    method: 'POST',
    url: endpoints.uploads,
    headers: {
      ...acceptJson,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'idempotency-key': idempotencyKey ?? randomKey(),
      ...(expiresAt && { 'mediabucket-expires-at': expiresAt.toISOString() }),
    },
    body: { content, onProgress },
    repeatable: true,
    signal,
    read:
      files.length === 1
        ? jsonReader('a media object', (response) => [readMedia(response)])
        : jsonReader('media objects', readManyMedia),
  })
}

function requireFiles(files: readonly FormFile[]): void {
  if (!Array.isArray(files)) throw new TypeError('uploadAll takes an array of { source, filename }')
  for (const [index, { source, filename }] of files.entries()) {
    if (!(typeof source === 'object' && (isBlob(source) || ArrayBuffer.isView(source))))
      throw new TypeError(`files[${index}].source must be a File, Blob or Uint8Array`)
    if (typeof filename !== 'string')
      throw new TypeError(`files[${index}].filename is missing: uploadAll takes { source, filename }`)
  }
}

/** Built here because FormData changes quotes and line ends in names. */
function formBlob(files: readonly FormFile[], boundary: string): Blob {
  const parts = files.flatMap(({ source, filename, contentType }) => {
    const type = contentType || ('type' in source && source.type) || 'application/octet-stream'
    if (/[\r\n]/.test(type)) throw new TypeError('contentType must be one line')
    const head = [
      `--${boundary}`,
      `Content-Disposition: form-data; name="file"; ${filenameParameter(filename)}`,
      `Content-Type: ${type}`,
    ]
    return [`${head.join('\r\n')}\r\n\r\n`, source as Blob | Uint8Array<ArrayBuffer>, '\r\n']
  })
  return new Blob([...parts, `--${boundary}--\r\n`])
}
