import { isItemId, isUploadId } from '../../core/ids.ts'

// What the values of a column are, as `fsck` checks them (column-checks.ts).

/** What a column contains. Values are checked as texts: integers may be too large for a number, and of bytes only the length is read. */
export interface ColumnCheck {
  readonly reads: 'text' | 'integer' | 'length'
  /** Left out if only one engine has the column. */
  readonly only?: 'sqlite' | 'postgres'
  readonly isValid: (value: string | null) => boolean
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

export const only = (engine: 'sqlite' | 'postgres', check: ColumnCheck): ColumnCheck => ({
  ...check,
  only: engine,
})

export const shape = (pattern: RegExp): ColumnCheck => text((value) => pattern.test(value))
export const shortText = (most: number): ColumnCheck => text((value) => value.length <= most)

/** Times from 1970 to the end of the year 9999. */
const maxTime = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
export const time = integer(0, maxTime)
/** Of a camera: from the year 0 on. */
export const cameraTime = integer(-62_167_219_200_000, maxTime)
/** Of an expiry, which an operator may set as late as they like, and of a deadline. */
export const laterTime = integer()
export const flag = integer(0, 1)
/** Numbers of rows that ranks are built for, so that a wrong one does not use up the memory. */
export const sequence = integer(0, 2 ** 40)
/** Compared with the rows by bucket-counters.ts, which corrects it. */
export const counter = text()
export const bucket = integer(-Number.MAX_SAFE_INTEGER)
export const tokenId = shape(/^(?:tok|usr)_[0-9a-z]{12}$/)
export const itemId = text(isItemId)
export const uploadId = text(isUploadId)
export const secret = shape(/^whsec_[\w+/]{43}=$/)
export const int4 = (least = 0) => integer(least, 2 ** 31 - 1)
