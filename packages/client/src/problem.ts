import { isObject } from './shape.ts'

/** A faulty parameter of a request. */
export interface ParameterFault {
  readonly parameter: string
  readonly detail: string
}

/** What went wrong, as the service tells it (RFC 9457). Members of other types than these are left out. */
export interface Problem {
  /** A URL that names the problem and explains it; `about:blank` when the service names none. */
  readonly type: string
  readonly title?: string
  readonly status?: number
  readonly detail?: string
  /** The id under which the service logged the request. */
  readonly instance?: string
  /** Names the problem for programs, such as `media-unknown`. */
  readonly code?: string
  readonly errors?: readonly ParameterFault[]
  /** Whatever else the service tells. */
  readonly [extension: string]: unknown
}

const texts = ['title', 'detail', 'instance', 'code']

/** The problem that an answer carries; null when its body is something else. */
export function readProblem(contentType: string | null, body: string): Problem | null {
  if (!/^application\/problem\+json\b/i.test(contentType ?? '')) return null
  const value = jsonOf(body)
  if (!isObject(value)) return null
  const { type, status, errors, ...others } = value
  // RFC 9457, section 3.1: a member of the wrong type is ignored, not fatal.
  const kept = Object.entries(others).filter(
    ([name, member]) => !texts.includes(name) || typeof member === 'string',
  )
  return {
    ...Object.fromEntries(kept),
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

/** A short line of a body that is no problem, for messages: what people can read in text and JSON, nothing of HTML. */
export function excerpt(contentType: string | null, body: string): string {
  if (!/^(?:text\/plain|application\/(?:[\w.-]+\+)?json)\b/i.test(contentType ?? '')) return ''
  const line = body.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
