import type { SharedServer } from './server.ts'

/** The bytes of a part of a form: the lines of its head, and its body. */
export interface Part {
  readonly head: string
  readonly body: string | Uint8Array
}

const boundary = 'frontier'

/** A file part as browsers write it; `filename` is not escaped. */
export const filePart = (filename: string, body: Part['body'] = 'x', type = 'text/plain'): Part => ({
  head: `Content-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: ${type}`,
  body,
})

/** A part that is not a file. */
export const fieldPart = (name: string, body: string, type?: string): Part => ({
  head: `Content-Disposition: form-data; name="${name}"${type ? `\r\nContent-Type: ${type}` : ''}`,
  body,
})

/** The body of a form with these parts. */
export const formBytes = (...parts: Part[]): Buffer<ArrayBuffer> =>
  Buffer.concat([
    ...parts.flatMap(({ head, body }) => [
      Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
      Buffer.from(body),
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ])

export const formType = `multipart/form-data; boundary=${boundary}`

/** Sends bytes, valid or not, as a form. */
export const sendForm = (
  server: SharedServer,
  body: string | Uint8Array<ArrayBuffer>,
  contentType = formType,
): Promise<Response> =>
  server.request('/api/media', { method: 'POST', body, headers: { 'content-type': contentType } })
