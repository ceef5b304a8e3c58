import { Type } from 'typebox'
import type { MediaId } from '../core/media-id.ts'

/** Why a backup or a restore did not copy the bytes of an item. The codes are stable: programs read them. */
export const copyFaults = {
  missing: 'there are no bytes',
  changed: 'the bytes are not those that were uploaded',
  unreadable: 'the bytes cannot be read',
  foreign: 'a link, a directory or another special file is in the place of the bytes',
  blocked: 'something that no backup wrote is in the place of the copy',
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
