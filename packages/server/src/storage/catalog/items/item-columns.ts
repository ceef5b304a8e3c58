import { maxStoredFocus } from '../../../core/focus.ts'
import { type ItemId, isItemId } from '../../../core/ids.ts'
import { type LabelChanges, type Labels, parseLabelText } from '../../../core/item-labels.ts'
import { isPath } from '../../../core/names.ts'
import { lastTime } from '../../../core/times.ts'

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
  /** The point of the picture that `cover` sizes keep, as core/focus.ts stores it. Left out or null for none. */
  readonly focus?: number | null
}

/** What the first render of an item's variants has found. */
export interface Preview {
  /** A placeholder of the picture of about 25 bytes (https://evanw.github.io/thumbhash/); null if unknown. */
  readonly thumbhash: Uint8Array | null
  /** Of a video, in milliseconds; null if unknown. */
  readonly duration: number | null
}

/** The texts of an item that people edit. What else they edit is optional, and in `NewItem`: an upload may know it. */
export interface ItemTexts {
  readonly filename: string | null
  readonly altText: string | null
  readonly caption: string | null
}

/** What responses tell of a stored item. */
export interface ItemDetails extends NewItem, Preview, ItemTexts {}

/** How values are stored: `bytewise` text is compared byte by byte, as SQLite compares all texts; labels are JSON, and a flag is 1 or null. */
const storedTypes = {
  text: { sqlite: 'TEXT', postgres: 'text' },
  bytewise: { sqlite: 'TEXT', postgres: 'text' },
  labels: { sqlite: 'TEXT', postgres: 'text' },
  int4: { sqlite: 'INTEGER', postgres: 'int4' },
  int8: { sqlite: 'INTEGER', postgres: 'int8' },
  flag: { sqlite: 'INTEGER', postgres: 'int4' },
  bytes: { sqlite: 'BLOB', postgres: 'bytea' },
} as const

export type StoredType = keyof typeof storedTypes

export interface ItemColumn {
  readonly column: string
  readonly type: StoredType
  /**
   * Left out for a member that an upload knows. Others become known `later`, and no code of uploads has them; or they are not of the item,
   * but of its `row`.
   */
  readonly of?: 'later' | 'row'
  /** An item lacks the member if the column is null. */
  readonly isOptional?: true
  /** People edit it. */
  readonly isEdited?: true
  /** What follows the type in the schema, and on SQLite; the column may be null if it is left out. */
  readonly constraint?: string
  readonly onSqlite?: string
  readonly only?: 'sqlite'
  /** What it contains, as `fsck` checks it: numbers in this range, or as many bytes or characters, or these texts. */
  readonly range?: readonly [number, number]
  readonly accepts?: (text: string) => boolean
}

type TypeOf<Value> = Value extends string
  ? 'text' | 'bytewise'
  : Value extends number
    ? 'int4' | 'int8'
    : Value extends boolean
      ? 'flag'
      : Value extends Uint8Array
        ? 'bytes'
        : 'labels'

/** The column of a member, whose marks must be those of the member's type. */
type MemberColumn<Member extends keyof ItemDetails> = ItemColumn & {
  readonly type: TypeOf<NonNullable<ItemDetails[Member]>>
} & (Member extends keyof NewItem ? { readonly of?: never } : { readonly of: 'later' }) &
  (undefined extends ItemDetails[Member] ? { readonly isOptional: true } : { readonly isOptional?: never }) &
  (Member extends keyof ItemTexts ? { readonly isEdited: true } : unknown)

const constraint = 'NOT NULL'
const orEmpty = "NOT NULL DEFAULT ''"
const onSqlite = 'NOT NULL REFERENCES buckets (id)'
const [anyNumber, most] = [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
const mostInt4 = 2 ** 31 - 1
/** Ranks are built for so many numbers, so that a wrong one does not use up the memory. */
const mostItems = 2 ** 40
/** The clock of a camera begins in the year 0. */
const year0 = -62_167_219_200_000
const isType = /^[\w!#$%&'*+.^`|~-]{1,127}\/[\w!#$%&'*+.^`|~-]{1,127}(?:;[ \x21-\x7e]*)?$/
const isName = (name: string) => name !== '' && Buffer.byteLength(name) <= 1_024 && !/\p{Cc}|\//u.test(name)
const isExtension = /^[a-z0-9]{1,32}$/
const isLabels = (json: string) => parseLabelText(json) != null

/** In the order of the table, in which a new column is the last one: a backup copies rows by position, and a migration adds columns at the end. */
const table = {
  bucketId: { column: 'bucket_id', type: 'int8', of: 'row', constraint, onSqlite, range: [anyNumber, most] },
  seq: { column: 'seq', type: 'int8', of: 'row', constraint, range: [0, mostItems] },
  id: { column: 'id', type: 'bytewise', constraint: 'NOT NULL UNIQUE', accepts: isItemId },
  extension: { column: 'extension', type: 'text', accepts: (text) => isExtension.test(text) },
  filename: { column: 'filename', type: 'text', isEdited: true, accepts: isName },
  contentType: { column: 'content_type', type: 'text', constraint, accepts: (text) => isType.test(text) },
  size: { column: 'size', type: 'int8', constraint },
  sha256: { column: 'sha256', type: 'bytes', constraint, range: [32, 32] },
  width: { column: 'width', type: 'int4', range: [1, mostInt4] },
  height: { column: 'height', type: 'int4', range: [1, mostInt4] },
  createdAt: { column: 'created_at', type: 'int8', constraint, range: [0, lastTime] },
  contentId: { column: 'content_id', type: 'int8', of: 'row', range: [1, most] },
  thumbhash: { column: 'thumbhash', type: 'bytes', of: 'later', range: [1, 100] },
  duration: { column: 'duration', type: 'int8', of: 'later' },
  altText: { column: 'alt_text', type: 'text', of: 'later', isEdited: true, range: [0, 1_000] },
  caption: { column: 'caption', type: 'text', of: 'later', isEdited: true, range: [0, 5_000] },
  /** The number of the last change of the row. */
  edited: { column: 'edited', type: 'int8', of: 'row', only: 'sqlite' },
  /** 1 if the filename has changed: responses that are in memory have the earlier one. */
  renamed: { column: 'renamed', type: 'flag', of: 'row' },
  /** Of an item in the trash: its number before the deletion, when it was deleted, and when it leaves the trash, which is not after `expiresAt`. */
  homeSeq: { column: 'home_seq', type: 'int8', of: 'row', range: [0, mostItems] },
  deletedAt: { column: 'deleted_at', type: 'int8', of: 'row', range: [0, lastTime] },
  leavesTrashAt: { column: 'expires_at', type: 'int8', of: 'row', range: [0, lastTime] },
  expiresAt: { column: 'item_expires_at', type: 'int8', isOptional: true, range: [0, lastTime] },
  labels: { column: 'labels', type: 'labels', isOptional: true, isEdited: true, accepts: isLabels },
  path: { column: 'path', type: 'bytewise', isOptional: true, accepts: isPath },
  takenAt: { column: 'taken_at', type: 'int8', isOptional: true, range: [year0, lastTime] },
  takenOffset: { column: 'taken_offset', type: 'int4', isOptional: true, range: [-1_440, 1_440] },
  takenRead: { column: 'taken_read', type: 'flag', isOptional: true },
  /** The key of the filename in the order of names (core/names.ts). */
  nameKey: { column: 'name_key', type: 'bytewise', of: 'row', constraint: orEmpty, range: [0, 10_000] },
  focus: { column: 'focus', type: 'int4', isOptional: true, isEdited: true, range: [0, maxStoredFocus] },
} as const satisfies { readonly [Member in keyof Required<ItemDetails>]: MemberColumn<Member> } & Readonly<
  Record<string, ItemColumn>
>

export type ItemColumnName = keyof typeof table

type EditedMember = keyof ItemDetails &
  { [Name in ItemColumnName]: (typeof table)[Name] extends { isEdited: true } ? Name : never }[ItemColumnName]

/** Changes of an item: members that are left out stay as they are. */
export interface ItemEdit extends Partial<Pick<ItemDetails, Exclude<EditedMember, 'labels'>>> {
  readonly labels?: LabelChanges
}

/** What an edit expects an item to have. */
export interface ItemState extends Pick<ItemDetails, EditedMember> {}

/** The columns of the table, by the names of their members. */
export const itemTable: Readonly<Record<ItemColumnName, ItemColumn>> = table

/** The columns in the schema of an engine. */
export const itemDefinitions = (engine: 'sqlite' | 'postgres'): string =>
  Object.values(itemTable)
    .filter(({ only = engine }) => only === engine)
    .map(({ column, type, constraint, onSqlite = constraint }) =>
      engine === 'sqlite'
        ? [column, storedTypes[type].sqlite, onSqlite]
        : [column, storedTypes[type].postgres, type === 'bytewise' ? 'COLLATE "C"' : undefined, constraint],
    )
    .map((parts) => `  ${parts.filter((part) => part !== undefined).join(' ')}`)
    .join(',\n')

export const columnOf = (name: ItemColumnName): string => table[name].column
export const postgresTypeOf = (name: ItemColumnName): string => storedTypes[table[name].type].postgres

export type ItemMember = keyof ItemDetails
const isColumnName = (name: string): name is ItemColumnName => Object.hasOwn(table, name)
const isMember = (name: ItemColumnName): name is ItemMember => itemTable[name].of !== 'row'
const isUploaded = (member: ItemMember): member is keyof NewItem => itemTable[member].of === undefined
const members = Object.keys(table).filter(isColumnName).filter(isMember)

/** The members of an item as it is added, and those that it gets later. */
export const newItemMembers = members.filter(isUploaded)
export const laterMembers = members.filter((member) => !isUploaded(member))
const ordered = [...newItemMembers, ...laterMembers]
/** What people edit. */
export const editedMembers = members.filter((member) => itemTable[member].isEdited)

/** The columns of the details of an item, those of a new item first, and how many they are. */
export const itemColumns = ordered.map(columnOf).join(', ')
export const itemColumnCount = ordered.length

/** The place of each member in `itemColumns`. */
export const itemPlaces = Object.fromEntries(ordered.map((member, place) => [member, place])) as Readonly<
  Record<ItemMember, number>
>
