import { isItemId, isUploadId } from '../../../core/ids.ts'
import { isObject, parseJson } from '../../../core/json.ts'
import { lastTime } from '../../../core/times.ts'
import { itemTable, newItemMembers, type StoredType } from '../items/item-columns.ts'
import type { EngineName } from '../statements.ts'

// What the cells of several tables contain.

/**
 * What a column contains. Values are checked as texts, because integers may be too large for a number. Of bytes, a check reads the length, or
 * the bytes in hexadecimal digits.
 */
export interface ColumnCheck {
  readonly reads: 'text' | 'integer' | 'length' | 'hex'
  /** Left out if only one engine has the column. */
  readonly only?: EngineName
  readonly isValid: (value: string | null) => boolean
}

export interface TableCheck {
  /** The primary key, or another unique one: rows are read in its order. */
  readonly key: readonly string[] | Readonly<Record<EngineName, readonly string[]>>
  readonly only?: EngineName
  readonly columns: Readonly<Record<string, ColumnCheck>>
  /** By a column that refers to another row, or to another column: a condition that is true if it is right. */
  readonly references?: Readonly<Record<string, string>>
  /** The reference without which a row is of no use, because it is derived from another one or belongs to it: a repair removes such rows. */
  readonly dependsOn?: string
}

export const text = (isValid: (value: string) => boolean = () => true): ColumnCheck => ({
  reads: 'text',
  isValid: (value) => value !== null && isValid(value),
})

/** A whole number in this range, which ends at the largest exact number by default. */
export const integer = (least = 0, most = Number.MAX_SAFE_INTEGER): ColumnCheck => ({
  reads: 'integer',
  isValid(value) {
    const number = value === null || !/^-?\d{1,16}$/.test(value) ? Number.NaN : Number(value)
    return Number.isSafeInteger(number) && number >= least && number <= most
  },
})

/** Bytes of a length in this range. */
export const bytes = (least = 0, most = Number.MAX_SAFE_INTEGER): ColumnCheck => ({
  ...integer(least, most),
  reads: 'length',
})

export const optional = (check: ColumnCheck): ColumnCheck => ({
  ...check,
  isValid: (value) => value === null || check.isValid(value),
})

export const only = (engine: EngineName, check: ColumnCheck): ColumnCheck => ({ ...check, only: engine })

export const shape = (pattern: RegExp): ColumnCheck => text((value) => pattern.test(value))
export const shortText = (most: number): ColumnCheck => text((value) => value.length <= most)

/** Times from 1970 to the end of the year 9999. */
export const time = integer(0, lastTime)
/** Of an expiry, which an operator may set as late as they like, and of a deadline. */
export const laterTime = integer()
export const flag = integer(0, 1)
/** Numbers of rows that ranks are built for, so that a wrong one does not use up the memory. */
export const sequence = integer(0, 2 ** 40)
/** Compared with the rows by bucket-counters.ts, which corrects it. */
export const counter = text()
export const bucket = integer(-Number.MAX_SAFE_INTEGER)
export const tokenId = shape(/^(?:tok|usr|svc)_[0-9a-z]{12}$/)
export const itemId = text(isItemId)
export const uploadId = text(isUploadId)
export const int4 = (least = 0) => integer(least, 2 ** 31 - 1)

export const ofBucket = (table: string) =>
  `EXISTS (SELECT 1 FROM buckets WHERE buckets.id = ${table}.bucket_id)`

/** JSON of the items of a stored response (`serializeItems` of items/item-rows.ts). */
export function isItemList(json: string): boolean {
  const items = parseJson(json)
  return (
    Array.isArray(items) && items.length > 0 && items.every((item) => isObject(item) && isStoredItem(item))
  )
}

const isNumber = (value: unknown) => Number.isSafeInteger(value)
const isText = (value: unknown) => typeof value === 'string'

/** By the type of the column of a member, its value in JSON. */
const isJson: Readonly<Record<StoredType, (value: unknown) => boolean>> = {
  ...{ int4: isNumber, int8: isNumber, text: isText },
  bytewise: isText,
  bytes: (value) => /^[0-9a-f]{64}$/.test(String(value)),
  labels: (value) => isObject(value) && Object.values(value).every(isText),
  flag: () => true,
}

const isStoredItem = (item: Readonly<Record<string, unknown>>): boolean =>
  newItemMembers.every((member) => {
    const { type, constraint, accepts } = itemTable[member]
    const value = item[member] ?? null
    if (value === null) return constraint === undefined
    return isJson[type](value) && (type !== 'bytewise' || accepts?.(String(value)) !== false)
  })
