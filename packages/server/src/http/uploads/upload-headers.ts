import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { type Checksum, parseChecksum } from './upload-checksum.ts'
import { parseMetadata, type UploadMetadata } from './upload-metadata.ts'

/** The headers of a request that describe an upload or a chunk; null or false where they are absent. */
export interface UploadHeaders {
  readonly checksum: Checksum | null
  readonly offset: number | null
  readonly length: number | null
  readonly isLengthDeferred: boolean
  readonly metadata: UploadMetadata | null
  readonly concat: string | null
}

/** Parses the headers of a request, used by its method or not. Throws Fault `upload-malformed` and `checksum-malformed`. */
export function parseUploadHeaders(headers: IncomingHttpHeaders): UploadHeaders {
  function parse<T>(name: string, parser: (value: string, name: string) => T): T | null {
    const value = headers[name.toLowerCase()]
    return value === undefined ? null : parser(value.toString(), name)
  }
  return {
    checksum: parse('Upload-Checksum', parseChecksum),
    offset: parse('Upload-Offset', parseByteCount),
    length: parse('Upload-Length', parseByteCount),
    isLengthDeferred: parse('Upload-Defer-Length', parseDeferLength) ?? false,
    metadata: parse('Upload-Metadata', parseMetadata),
    concat: parse('Upload-Concat', parseConcat),
  }
}

/** tus 1.0.0, Core, Upload-Offset and Upload-Length: "The value MUST be a non-negative integer." */
export function parseByteCount(value: string, name: string): number {
  const count = Number(value)
  // Without leading zeros, and only numbers that are represented exactly.
  if (!/^\d+$/.test(value) || String(count) !== value)
    throw new Fault('upload-malformed', `${name} must be a whole number of bytes in plain digits.`)
  return count
}

/** tus 1.0.0, Creation: "Its value MUST be 1." and "any other value than 1 the server should return a 400 Bad Request status". */
export function parseDeferLength(value: string): true {
  if (value !== '1') throw new Fault('upload-malformed', 'Upload-Defer-Length must be 1.')
  return true
}

/** tus 1.0.0, Concatenation: "the header value MUST be partial", or "final followed by a semicolon" and a list of URLs. */
export function parseConcat(value: string): string {
  if (value !== 'partial' && !value.startsWith('final;'))
    throw new Fault('upload-malformed', 'Upload-Concat must be partial, or final; and a list of URLs.')
  return value
}
