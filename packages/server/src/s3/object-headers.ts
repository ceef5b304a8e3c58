import { storedHeaders } from '../objects/object-operations.ts'
import type { ObjectHeaders } from '../objects/object-types.ts'
import { S3Error } from './s3-errors.ts'
import { isHeaderValue, type S3Request } from './s3-request.ts'

/** The headers of an object that requests state and responses have, by their names in ObjectHeaders. */
const plainHeaders = {
  contentType: 'content-type',
  cacheControl: 'cache-control',
  contentDisposition: 'content-disposition',
  contentEncoding: 'content-encoding',
  contentLanguage: 'content-language',
  expires: 'expires',
} as const

type PlainHeader = keyof typeof plainHeaders

const plainNames = [
  ...(['contentType', 'cacheControl', 'contentDisposition'] as const),
  ...(['contentEncoding', 'contentLanguage', 'expires'] as const),
] satisfies readonly PlainHeader[]

const metaPrefix = 'x-amz-meta-'

/** The metadata that the service adds to the response to a HEAD; what a client sends of this name is not stored. */
export const urlMetadata = `${metaPrefix}mediabucket-url`

/** As S3: names and values of the metadata together. Bytes. */
const maxMetadata = 2_048

/**
 * The headers and the metadata of a new object. Metadata are stored with the bytes that were sent, so that each client receives its own encoding
 * again: UTF-8, Latin-1 or RFC 2047. Throws S3Error `MetadataTooLarge`, and ObjectFault `headers-too-large`.
 */
export function readObjectHeaders(request: S3Request): ObjectHeaders {
  const metadata = Object.fromEntries(
    request
      .headersFrom(metaPrefix)
      .filter(([name]) => name !== urlMetadata && name !== metaPrefix)
      .map(([name, value]) => [name.slice(metaPrefix.length), value]),
  )
  const size = Object.entries(metadata).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (size > maxMetadata) throw new S3Error('MetadataTooLarge')
  const headers: ObjectHeaders = { ...plainOf((name) => sentHeader(request, name)), metadata }
  // Before the body arrives.
  storedHeaders(headers)
  return headers
}

function plainOf(read: (name: PlainHeader) => string | undefined): Partial<Record<PlainHeader, string>> {
  const found: Partial<Record<PlainHeader, string>> = {}
  for (const name of plainNames) {
    const value = read(name)
    if (value !== undefined && value !== '') found[name] = value
  }
  return found
}

function sentHeader(request: S3Request, name: PlainHeader): string | undefined {
  const value = request.header(plainHeaders[name])
  if (name !== 'contentEncoding' || value === undefined) return value
  // The coding of the request, not of the object.
  return value
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding.toLowerCase() !== 'aws-chunked')
    .join(', ')
}

/** The parameters that replace headers of one response. */
const overrides: Readonly<Record<PlainHeader, string>> = {
  contentType: 'response-content-type',
  cacheControl: 'response-cache-control',
  contentDisposition: 'response-content-disposition',
  contentEncoding: 'response-content-encoding',
  contentLanguage: 'response-content-language',
  expires: 'response-expires',
}

/** What a request replaces in the headers of the response. Throws S3Error `InvalidArgument` and `InvalidRequest`. */
export function readOverrides(request: S3Request): Partial<Record<PlainHeader, string>> {
  const found = plainOf((name) => request.parameter(overrides[name]))
  if (Object.keys(found).length > 0 && request.signing === 'none')
    throw new S3Error('InvalidRequest', 'Only signed requests can replace headers of the response.')
  for (const value of Object.values(found))
    if (!isHeaderValue(value))
      throw new S3Error('InvalidArgument', 'A header of the response cannot have this value.')
  return found
}

/** The headers of an object but its type, as alternating names and values. */
export function headOfObject(headers: Omit<ObjectHeaders, 'checksum'>): string[] {
  const head: string[] = []
  for (const name of plainNames) {
    const value = headers[name]
    if (value !== undefined && name !== 'contentType') head.push(plainHeaders[name], value)
  }
  for (const [name, value] of Object.entries(headers.metadata)) head.push(metaPrefix + name, value)
  return head
}
