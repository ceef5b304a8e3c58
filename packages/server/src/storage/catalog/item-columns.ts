import type { ItemId } from '../../core/ids.ts'
import { type Labels, parseLabelText } from '../../core/labels.ts'
import { isPath } from '../../core/names.ts'
import {
  bucket,
  bytes,
  type ColumnCheck,
  cameraTime,
  flag,
  int4,
  integer,
  itemId,
  optional,
  sequence,
  shape,
  shortText,
  text,
  time,
} from './value-checks.ts'

// The members of an item and the columns of the table `items`, each once: schemas, statements, readers, checks and transfers are derived from here.

/** An item to be stored. */
export interface NewItem {
  readonly id: ItemId
  readonly filename: string | null
  readonly contentType: string
  /** Without the dot; null if the type is unknown. */
  readonly extension: string | null
  /** Bytes. */
  readonly size: number
  /** 32 bytes. */
  readonly sha256: Uint8Array
  readonly width: number | null
  readonly height: number | null
  /** Milliseconds since 1970; never used for order. */
  readonly createdAt: number
  /** When it expires, in milliseconds since 1970. Left out or null for never. */
  readonly expiresAt?: number | null
  /** Left out or null for none. */
  readonly labels?: Labels | null
  /** Within the folder that was uploaded. Left out or null for none. */
  readonly path?: string | null
  /**
   * When the picture or the video was taken: what the clock of the camera showed, in milliseconds since 1970 as if that clock were UTC, and the
   * minutes by which it was ahead of UTC. Left out or null if unknown.
   */
  readonly takenAt?: number | null
  readonly takenOffset?: number | null
  /** True for an item without this time if its bytes were read for it. The others are read later (taken-times.ts). */
  readonly takenRead?: boolean
}

/** What the first render of an item's variants has found. */
export interface Preview {
  /** A placeholder of the picture of about 25 bytes (https://evanw.github.io/thumbhash/); null if unknown. */
  readonly thumbhash: Uint8Array | null
  /** Of a video, in milliseconds; null if unknown. */
  readonly duration: number | null
}

/** The texts of an item that can be edited. */
export interface ItemTexts {
  readonly filename: string | null
  readonly altText: string | null
  readonly caption: string | null
}

/** What responses tell of a stored item. */
export interface ItemDetails extends NewItem, Preview, ItemTexts {}

/** How the values of a column are stored. `bytewise` is text that is compared byte by byte, as SQLite always does; labels are JSON, and a flag is 1 or null. */
const storedTypes = {
  text: { sqlite: 'TEXT', postgres: 'text' },
  bytewise: { sqlite: 'TEXT', postgres: 'text' },
  labels: { sqlite: 'TEXT', postgres: 'text' },
  int4: { sqlite: 'INTEGER', postgres: 'int4' },
  int8: { sqlite: 'INTEGER', postgres: 'int8' },
  flag: { sqlite: 'INTEGER', postgres: 'int4' },
  bytes: { sqlite: 'BLOB', postgres: 'bytea' },
} as const

type StoredType = keyof typeof storedTypes
type Engine = 'sqlite' | 'postgres'

interface Column {
  readonly column: string
  readonly type: StoredType
  /** Whether an upload knows it, or it becomes known later, or it is not of the item, but of its row. */
  readonly of: 'upload' | 'later' | 'row'
  readonly check: ColumnCheck
  /** What follows the type in the schema; the column may be null if this is left out. */
  readonly constraint?: string
  /** In place of it on SQLite. */
  readonly onSqlite?: string
  readonly only?: 'sqlite'
  /** For a member that is left out for null, or without another member: this member. */
  readonly leftOutWith?: ItemMember
  readonly isEditable?: true
}

/** The type of the column of a member with such values. */
type TypeOf<Value> = Value extends string
  ? 'text' | 'bytewise'
  : Value extends number
    ? 'int4' | 'int8'
    : Value extends boolean
      ? 'flag'
      : Value extends Uint8Array
        ? 'bytes'
        : 'labels'

/** Members that may be left out are read by their marks. */
type MemberColumn<Member extends keyof ItemDetails> = Column & {
  readonly type: TypeOf<NonNullable<ItemDetails[Member]>>
  readonly of: Member extends keyof NewItem ? 'upload' : 'later'
} & (undefined extends ItemDetails[Member] ? { readonly leftOutWith: ItemMember } : unknown) &
  (Member extends keyof ItemTexts ? { readonly isEditable: true } : unknown)

/** In the order of the table, in which a new column is the last one: a backup copies rows by position, and a migration adds columns at the end. */
const table = {
  bucketId: {
    ...{ column: 'bucket_id', type: 'int8', of: 'row', check: bucket },
    ...{ constraint: 'NOT NULL', onSqlite: 'NOT NULL REFERENCES buckets (id)' },
  },
  seq: { column: 'seq', type: 'int8', of: 'row', constraint: 'NOT NULL', check: sequence },
  id: { column: 'id', type: 'bytewise', of: 'upload', constraint: 'NOT NULL UNIQUE', check: itemId },
  extension: { column: 'extension', type: 'text', of: 'upload', check: shape(/^[a-z0-9]{1,32}$/) },
  filename: {
    ...{ column: 'filename', type: 'text', of: 'upload', isEditable: true },
    check: text((name) => name !== '' && Buffer.byteLength(name) <= 1_024 && !/\p{Cc}|\//u.test(name)),
  },
  contentType: {
    ...{ column: 'content_type', type: 'text', of: 'upload', constraint: 'NOT NULL' },
    check: shape(/^[\w!#$%&'*+.^`|~-]{1,127}\/[\w!#$%&'*+.^`|~-]{1,127}(?:;[ \x21-\x7e]*)?$/),
  },
  size: { column: 'size', type: 'int8', of: 'upload', constraint: 'NOT NULL', check: integer() },
  sha256: { column: 'sha256', type: 'bytes', of: 'upload', constraint: 'NOT NULL', check: bytes(32, 32) },
  width: { column: 'width', type: 'int4', of: 'upload', check: int4(1) },
  height: { column: 'height', type: 'int4', of: 'upload', check: int4(1) },
  createdAt: { column: 'created_at', type: 'int8', of: 'upload', constraint: 'NOT NULL', check: time },
  contentId: { column: 'content_id', type: 'int8', of: 'row', check: integer(1) },
  thumbhash: { column: 'thumbhash', type: 'bytes', of: 'later', check: bytes(1, 100) },
  duration: { column: 'duration', type: 'int8', of: 'later', check: integer() },
  altText: { column: 'alt_text', type: 'text', of: 'later', isEditable: true, check: shortText(1_000) },
  caption: { column: 'caption', type: 'text', of: 'later', isEditable: true, check: shortText(5_000) },
  edited: { column: 'edited', type: 'int8', of: 'row', only: 'sqlite', check: integer() },
  renamed: { column: 'renamed', type: 'flag', of: 'row', check: flag },
  homeSeq: { column: 'home_seq', type: 'int8', of: 'row', check: sequence },
  deletedAt: { column: 'deleted_at', type: 'int8', of: 'row', check: time },
  leavesTrashAt: { column: 'expires_at', type: 'int8', of: 'row', check: time },
  expiresAt: {
    ...{ column: 'item_expires_at', type: 'int8', of: 'upload', leftOutWith: 'expiresAt', check: time },
  },
  labels: {
    ...{ column: 'labels', type: 'labels', of: 'upload', leftOutWith: 'labels' },
    check: text((json) => parseLabelText(json) != null),
  },
  path: { column: 'path', type: 'bytewise', of: 'upload', leftOutWith: 'path', check: text(isPath) },
  takenAt: { column: 'taken_at', type: 'int8', of: 'upload', leftOutWith: 'takenAt', check: cameraTime },
  takenOffset: {
    ...{ column: 'taken_offset', type: 'int4', of: 'upload', leftOutWith: 'takenAt' },
    check: integer(-1_440, 1_440),
  },
  takenRead: { column: 'taken_read', type: 'flag', of: 'upload', leftOutWith: 'takenRead', check: flag },
  nameKey: {
    ...{ column: 'name_key', type: 'bytewise', of: 'row', constraint: "NOT NULL DEFAULT ''" },
    check: shortText(10_000),
  },
} as const satisfies { readonly [Member in keyof Required<ItemDetails>]: MemberColumn<Member> } & Readonly<
  Record<string, Column>
>

const isName = (name: string): name is keyof typeof table => Object.hasOwn(table, name)
const names = Object.keys(table).filter(isName)
const columns: readonly Column[] = names.map((name) => table[name])

/** The columns in the schema of an engine. */
export const itemDefinitions = (engine: Engine): string =>
  columns
    .filter(({ only = engine }) => only === engine)
    .map(({ column, type, constraint = '', onSqlite = constraint }) => {
      const collation = engine === 'postgres' && type === 'bytewise' ? 'COLLATE "C"' : ''
      const parts = [
        column,
        storedTypes[type][engine],
        collation,
        engine === 'sqlite' ? onSqlite : constraint,
      ]
      return `  ${parts.filter((part) => part !== '').join(' ')}`
    })
    .join(',\n')

/** The check of each column. */
export const itemChecks: Readonly<Record<string, ColumnCheck>> = Object.fromEntries(
  columns.map(({ column, constraint, check, only }) => [
    column,
    { ...(constraint === undefined ? optional(check) : check), ...(only && { only }) },
  ]),
)

export type ItemMember = keyof ItemDetails
const isMember = (name: keyof typeof table): name is ItemMember => table[name].of !== 'row'
const isUploaded = (member: ItemMember): member is keyof NewItem => table[member].of === 'upload'
const isEditable = (member: ItemMember): member is keyof ItemTexts => 'isEditable' in table[member]
const members = names.filter(isMember)

/** The members of an item as it is added, those that it gets later, and those of its texts. */
export const newItemMembers = members.filter(isUploaded)
export const laterMembers = members.filter((member) => !isUploaded(member))
export const textMembers = members.filter(isEditable)

export type ItemColumnName = keyof typeof table

/** The column of a member, or of its row, how it is stored, and its type on PostgreSQL. */
export const columnOf = (name: ItemColumnName): string => table[name].column
export const storedTypeOf = (name: ItemColumnName): StoredType => table[name].type
export const postgresTypeOf = (name: ItemColumnName): string => storedTypes[table[name].type].postgres

const textOf = (of: readonly ItemMember[]): string => of.map(columnOf).join(', ')

/** The columns of an item as it is added, and their number. */
export const newItemColumns = textOf(newItemMembers)
export const newItemColumnCount = newItemMembers.length

/** The columns of the details of an item, which begin with those of a new one, and their number. */
export const itemColumns = textOf([...newItemMembers, ...laterMembers])
export const itemColumnCount = members.length

const places = Object.fromEntries([...newItemMembers, ...laterMembers].map((member, at) => [member, at]))
/** The place of each member in `itemColumns`. */
export const itemPlaces = places as Readonly<Record<ItemMember, number>>

/** A member that an item lacks if the column at `unlessNullAt` is null. */
export interface OptionalMember {
  readonly member: ItemMember
  readonly type: StoredType
  readonly at: number
  readonly unlessNullAt: number
}

const optionalOf = (of: readonly ItemMember[]): readonly OptionalMember[] =>
  of.flatMap((member) => {
    const { type, leftOutWith }: Column = table[member]
    if (leftOutWith === undefined) return []
    return [{ member, type, at: itemPlaces[member], unlessNullAt: itemPlaces[leftOutWith] }]
  })

/** Of a new item, and of the details of one. */
export const optionalOfNewItem = optionalOf(newItemMembers)
export const optionalOfItem = optionalOf(members)
