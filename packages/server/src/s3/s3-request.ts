import type { IncomingMessage, ServerResponse } from 'node:http'
import { countHeader } from '../http/headers.ts'
import type { Exchange } from '../http/route.ts'
import type { RequestTarget } from './request-target.ts'
import { S3Error } from './s3-errors.ts'

/** How a request is signed: a URL of Version 4 can have headers of the protocol as parameters, which are signed. */
type Signing = 'header' | 'url-v4' | 'url-v2' | 'none'

/** A request of the S3 protocol. */
export class S3Request implements Pick<Exchange, 'id' | 'request' | 'response' | 'line'> {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly line: Exchange['line']
  readonly target: RequestTarget
  readonly signing: Signing
  #parameters: ReadonlyMap<string, string> | null = null

  constructor(
    { id, request, response, line }: S3Request | Omit<Exchange, 'params' | 'query'>,
    target: RequestTarget,
  ) {
    this.id = id
    this.request = request
    this.response = response
    this.line = line
    this.target = target
    this.signing = signingOf(request, target)
  }

  /** A browser may have followed this URL, so that the response can become a page. */
  get isUrl(): boolean {
    return this.signing !== 'header'
  }

  /** A header, in lower case, as text of Latin-1; in a signed URL, also a parameter with the name of a header of S3. */
  header(name: string): string | undefined {
    const sent = this.request.headers[name]
    if (sent !== undefined) return Array.isArray(sent) ? sent.join(', ') : sent
    return this.signing === 'url-v4' && name.startsWith('x-amz-')
      ? this.#amzParameters().get(name)
      : undefined
  }

  /** The headers whose names begin so, in lower case, without repeated ones. Throws S3Error `InvalidRequest`. */
  headersFrom(prefix: string): readonly (readonly [name: string, value: string])[] {
    const own = Object.keys(this.request.headers)
    const ofUrl = this.signing === 'url-v4' ? [...this.#amzParameters().keys()] : []
    return [...new Set([...own, ...ofUrl])]
      .filter((name) => name.startsWith(prefix))
      .map((name) => {
        if (countHeader(this.request, name) > 1)
          throw new S3Error('InvalidRequest', `The request has more than one header ${name}.`)
        return [name, this.header(name) ?? ''] as const
      })
  }

  /** Parameters with names of headers of S3, as headers. Throws S3Error `InvalidArgument` for those that no header could be. */
  #amzParameters(): ReadonlyMap<string, string> {
    this.#parameters ??= new Map(
      [...this.target.query]
        .map(([name, value]) => [name.toLowerCase(), latin1OfUtf8(value)] as const)
        .filter(([name]) => name.startsWith('x-amz-')),
    )
    for (const [name, value] of this.#parameters)
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !isHeaderValue(value))
        throw new S3Error(
          'InvalidArgument',
          'A parameter is no header of S3: its name or its value is not one.',
        )
    return this.#parameters
  }

  /** A parameter; undefined if it was not sent. */
  parameter(name: string): string | undefined {
    return this.target.query.get(name) ?? undefined
  }
}

/** The text of a header whose bytes are the UTF-8 of a parameter. */
export const latin1OfUtf8 = (text: string): string => Buffer.from(text).toString('latin1')

/** What HTTP allows in a value. Node has Latin-1 characters for the bytes of others. */
export const isHeaderValue = (text: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(text)

/** Throws S3Error `InvalidArgument` for two kinds of signatures. */
function signingOf({ headers }: IncomingMessage, { query }: RequestTarget): Signing {
  const isV4 = query.has('X-Amz-Algorithm') || query.has('X-Amz-Signature')
  const isV2 = query.has('Signature') && query.has('AWSAccessKeyId')
  const isHeader = headers.authorization !== undefined
  if (Number(isV4) + Number(isV2) + Number(isHeader) > 1)
    throw new S3Error(
      'InvalidArgument',
      'A request has one signature: in the Authorization header or in the URL.',
    )
  return isHeader ? 'header' : isV4 ? 'url-v4' : isV2 ? 'url-v2' : 'none'
}
