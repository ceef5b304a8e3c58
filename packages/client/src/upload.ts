import type { CallOptions } from './call-options.ts'
import { contentDisposition } from './content-disposition.ts'
import { type Media, readMedia } from './media.ts'
import { xhrOfPlatform } from './platform.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type Sending, send } from './send.ts'
import type { UploadProgress } from './upload-body.ts'
import { type UploadSource, uploadContent } from './upload-content.ts'
import { xhrTransport } from './xhr-transport.ts'

/** What an upload takes. */
export interface UploadOptions extends CallOptions {
  /** The name to keep. Default: that of a File; none for other sources. */
  readonly filename?: string | undefined
  /** The type to declare. Default: that of a File or Blob; none for other sources. */
  readonly contentType?: string | undefined
  /** Called as bytes leave: after each chunk in Node.js, as the browser tells in browsers. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined
}

/** Sends one file as the body of one request (docs/interface.md U3), to the URL that takes uploads. */
export async function uploadMedia(
  sending: Sending,
  url: string,
  source: UploadSource,
  { filename, contentType, onProgress, signal }: UploadOptions,
): Promise<Media> {
  const content = await uploadContent(source, signal)
  const name = filename ?? content.name
  const type = contentType ?? content.type
  const repeatable = content.blob !== null
  const headers: Record<string, string> = {
    ...acceptJson,
    ...(type === null ? {} : { 'content-type': type }),
    ...(name === null ? {} : { 'content-disposition': contentDisposition(name) }),
    // One key for all tries of this upload, so that the service can tell a repeat from another file.
    ...(repeatable ? { 'idempotency-key': randomKey() } : {}),
  }
  const Xhr = onProgress && sending.platformFetch ? xhrOfPlatform() : undefined
  try {
    return await send(Xhr ? { ...sending, transport: xhrTransport(Xhr) } : sending, {
      method: 'POST',
      url,
      headers,
      body: { content, onProgress },
      repeatable,
      signal,
      read: jsonReader('a media object', readMedia),
    })
  } catch (error) {
    content.release()
    throw error
  }
}

/** 128 random bits, in hex. (`crypto.randomUUID` is missing in pages that were not loaded over HTTPS.) */
const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )
