import { Type } from 'typebox'
import type { ItemId } from '../core/media-id.ts'
import { type CopyFault, copyFaults } from './copy-faults.ts'

/** As stored in `backup.json` and `restoring.json`. */
export const FaultyItems = Type.Array(
  Type.Object({
    id: Type.Unsafe<ItemId>(Type.String()),
    what: Type.Unsafe<CopyFault>(Type.Enum(Object.keys(copyFaults))),
  }),
)

export type FaultyItem = Type.Static<typeof FaultyItems>[number]
