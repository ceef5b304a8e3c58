import { ShapeError } from './errors.ts'

interface Mismatch {
  readonly path: string
  readonly fault: string
}

/** Returns the first member of a value that does not match T, or null if the value is a T. Paths are built only for a mismatch. */
export interface Check<T> {
  (value: unknown): Mismatch | null
  /** Never set; it only has the type T. */
  readonly accepts?: T
}

const kindOf = (value: unknown): string => {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  return `the ${typeof value} ${JSON.stringify(value).slice(0, 40)}`
}

const check =
  <T>(expected: string, accepts: (value: unknown) => boolean): Check<T> =>
  (value) =>
    accepts(value) ? null : { path: '', fault: `must be ${expected}, and is ${kindOf(value)}` }

export const text = check<string>('a string', (value) => typeof value === 'string')
export const textOrNull = check<string | null>(
  'a string or null',
  (value) => value === null || typeof value === 'string',
)
export const flag = check<boolean>('true or false', (value) => typeof value === 'boolean')
export const count = check<number>('a whole number', (value) => isCount(value, 0))
export const position = check<number>('a whole number from 1', (value) => isCount(value, 1))
export const countOrNull = check<number | null>(
  'a whole number or null',
  (value) => value === null || isCount(value, 0),
)

const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value)
export const number = check<number>('a number', isNumber)
export const numberOrNull = check<number | null>(
  'a number or null',
  (value) => value === null || Number.isFinite(value),
)

/** A value that is no object: a text, a number, true or false, null, or a list of texts. */
export type Fact = string | number | boolean | null | readonly string[]

export const fact = check<Fact>(
  'a text, a number, true, false, null or a list of texts',
  (value) =>
    value === null ||
    ['string', 'number', 'boolean'].includes(typeof value) ||
    (Array.isArray(value) && value.every((entry) => typeof entry === 'string')),
)

const isCount = (value: unknown, least: number): boolean =>
  Number.isSafeInteger(value) && Number(value) >= least

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const object = check<Record<string, unknown>>('an object', isObject)
const array = check<unknown[]>('an array', Array.isArray)

/** An optional member. */
export const optional =
  <T>(inner: Check<T>): Check<T | undefined> =>
  (value) =>
    value === undefined ? null : inner(value)

/** A member that may be null. */
export const orNull =
  <T>(inner: Check<T>): Check<T | null> =>
  (value) =>
    value === null ? null : inner(value)

/** Unknown members are allowed, because later versions of a service may add them. */
export function objectOf<T extends object>(members: { readonly [K in keyof T]-?: Check<T[K]> }): Check<T> {
  const entries: [string, Check<unknown>][] = Object.entries(members)
  return (value) => {
    if (!isObject(value)) return object(value)
    for (const [name, inner] of entries) {
      const mismatch = inner(value[name])
      if (mismatch) return { ...mismatch, path: `${name}${join(mismatch.path)}` }
    }
    return null
  }
}

/** An object with any members of one kind. */
export const recordOf =
  <T>(inner: Check<T>): Check<Readonly<Record<string, T>>> =>
  (value) => {
    if (!isObject(value)) return object(value)
    for (const [name, member] of Object.entries(value)) {
      const mismatch = inner(member)
      if (mismatch) return { ...mismatch, path: `${name}${join(mismatch.path)}` }
    }
    return null
  }

export const arrayOf =
  <T>(inner: Check<T>): Check<readonly T[]> =>
  (value) => {
    if (!Array.isArray(value)) return array(value)
    for (const [index, item] of value.entries()) {
      const mismatch = inner(item)
      if (mismatch) return { ...mismatch, path: `[${index}]${join(mismatch.path)}` }
    }
    return null
  }

const join = (path: string): string => (path === '' || path.startsWith('[') ? path : `.${path}`)

/** Returns the value unchanged, with its unknown members. Throws a `ShapeError` if it does not match. */
export function parse<T>(what: string, shape: Check<T>, value: unknown): T {
  const mismatch = shape(value)
  if (mismatch) throw new ShapeError(what, mismatch.path, mismatch.fault)
  return value as T
}
