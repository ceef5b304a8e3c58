import type { ItemId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { BucketId, ContentId, TokenId } from './records.ts'

/** One row as an array, in the order of the selected columns. */
export type Row = readonly unknown[]

function wrong(row: Row, column: number, wanted: string): never {
  throw new TypeError(`the catalog holds ${typeof row[column]} in column ${column}, not ${wanted}`)
}

export function integer(row: Row, column: number): number {
  const value = row[column]
  return typeof value === 'number' ? value : wrong(row, column, 'an integer')
}

export function text(row: Row, column: number): string {
  const value = row[column]
  return typeof value === 'string' ? value : wrong(row, column, 'text')
}

// No driver returns shared memory.
const isBytes = (value: unknown): value is Uint8Array<ArrayBuffer> => value instanceof Uint8Array

export function bytes(row: Row, column: number): Uint8Array<ArrayBuffer> {
  const value = row[column]
  return isBytes(value) ? value : wrong(row, column, 'bytes')
}

export const integerOrNull = (row: Row, column: number): number | null =>
  row[column] === null ? null : integer(row, column)

export const textOrNull = (row: Row, column: number): string | null =>
  row[column] === null ? null : text(row, column)

export const bytesOrNull = (row: Row, column: number): Uint8Array | null =>
  row[column] === null ? null : bytes(row, column)

// Columns of ids contain only ids of their kind.

export const itemIdOf = (row: Row, column: number): ItemId => text(row, column) as ItemId
export const uploadIdOf = (row: Row, column: number): UploadId => text(row, column) as UploadId
export const tokenIdOf = (row: Row, column: number): TokenId => text(row, column) as TokenId
export const bucketIdOf = (row: Row, column: number): BucketId => integer(row, column) as BucketId
export const contentIdOf = (row: Row, column: number): ContentId => integer(row, column) as ContentId
