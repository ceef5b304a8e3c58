import { isObject } from './shape.ts'

/** An invalid parameter of a request. */
export interface ParameterFault {
  readonly parameter: string
  readonly detail: string
}

/** The reason of a refusal, as the service reports it (RFC 9457). Members of other types are omitted. */
export interface Problem {
  /** A URL that names the problem and explains it; `about:blank` if the service names none. */
  readonly type: string
  readonly title?: string
  readonly status?: number
  readonly detail?: string
  /** The id under which the service logged the request. */
  readonly instance?: string
  /** The code of the problem for programs, such as `media-unknown`. */
  readonly code?: string
  readonly errors?: readonly ParameterFault[]
  /** Other members that the service sends. */
  readonly [extension: string]: unknown
}

const texts = ['title', 'detail', 'instance', 'code']

/** The problem in the body of a response; null for any other body. */
export function readProblem(contentType: string | null, body: string): Problem | null {
  if (!/^application\/problem\+json\b/i.test(contentType ?? '')) return null
  const value = jsonOf(body)
  if (!isObject(value)) return null
  const { type, status, errors, ...others } = value
  // RFC 9457, section 3.1: a member of the wrong type is ignored, not fatal.
  const members = Object.entries(others).filter(
    ([name, member]) => !texts.includes(name) || typeof member === 'string',
  )
  return {
    ...Object.fromEntries(members),
    type: typeof type === 'string' && type !== '' ? type : 'about:blank',
    ...(typeof status === 'number' ? { status } : {}),
    ...(Array.isArray(errors) ? { errors: errors.filter(isParameterFault) } : {}),
  }
}

const isParameterFault = (value: unknown): value is ParameterFault =>
  isObject(value) && typeof value['parameter'] === 'string' && typeof value['detail'] === 'string'

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** The first line of a body that is not a problem, for messages: of text and JSON; empty for HTML and others. */
export function excerpt(contentType: string | null, body: string): string {
  if (!/^(?:text\/plain|application\/(?:[\w.-]+\+)?json)\b/i.test(contentType ?? '')) return ''
  const line = body.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
