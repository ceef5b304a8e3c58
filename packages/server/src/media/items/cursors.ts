import { createHash } from 'node:crypto'
import type { ItemPlace, ItemSelection } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'

/** Formats and parses cursors. A cursor is valid for one selection of items, and until the data are restored. */
export interface Cursors {
  format(selection: ItemSelection, place: ItemPlace): string
  /** Throws Fault `cursor-malformed` (docs/interface.md K6). */
  parse(selection: ItemSelection, cursor: string): ItemPlace
}

/** Part of every digest. Increment it when the meaning of a place changes. */
const formatVersion = 1
const digestLength = 9

const placeShape = /^(0|[1-9]\d*)\.(0|-?[1-9]\d*)$/

/** `epoch` identifies the data: after a restore, an earlier place could be that of another item. */
export function createCursors(epoch: string): Cursors {
  /** The digest is no secret. It recognizes cursors of other lists, and changed ones. */
  function format(selection: ItemSelection, { seq, createdAt }: ItemPlace): string {
    const { bucketId, order, kind, from, to, name } = selection
    const place = `${seq}.${createdAt}`
    const digest = createHash('sha256')
      .update(
        JSON.stringify([
          formatVersion,
          epoch,
          bucketId,
          order,
          kind,
          from,
          to,
          ...(name === null ? [] : [name]),
          place,
        ]),
      )
      .digest()
      .subarray(0, digestLength)
    return Buffer.concat([digest, Buffer.from(place)]).toString('base64url')
  }

  return {
    format,
    parse(selection, cursor) {
      const found = placeShape.exec(Buffer.from(cursor, 'base64url').toString('latin1', digestLength))
      const place = found && { seq: Number(found[1]), createdAt: Number(found[2]) }
      if (place && format(selection, place) === cursor) return place
      const detail =
        'after accepts the next_cursor of a response with the same token, order and filters, unchanged.'
      throw new Fault('cursor-malformed', detail, { parameters: [{ parameter: 'after', detail }] })
    },
  }
}
