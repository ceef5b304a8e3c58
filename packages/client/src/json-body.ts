import type { UploadBody } from './upload-body.ts'
import { contentOfBytes } from './upload-content.ts'

/** The body of a request with a JSON value. */
export const jsonBody = (value: unknown): UploadBody => ({
  content: contentOfBytes(new TextEncoder().encode(JSON.stringify(value))),
  onProgress: undefined,
})
