import { Type } from 'typebox'
import type { MediaId } from '../core/media-id.ts'

/** Why a backup or a restore did not copy the bytes of an item. The codes are stable: programs read them. */
export const copyFaults = {
  missing: 'the bytes do not exist',
  changed: 'the bytes are not those that were uploaded',
  unreadable: 'the bytes cannot be read',
  foreign: 'the path of the bytes is a link, a directory or a special file',
  blocked: 'the path of the copy is in use by a file that no backup wrote',
} as const

export type CopyFault = keyof typeof copyFaults

/** As stored in `backup.json` and `restoring.json`. */
export const FaultyItems = Type.Array(
  Type.Object({
    id: Type.Unsafe<MediaId>(Type.String()),
    what: Type.Unsafe<CopyFault>(Type.Enum(Object.keys(copyFaults))),
  }),
)

export type FaultyItem = Type.Static<typeof FaultyItems>[number]
