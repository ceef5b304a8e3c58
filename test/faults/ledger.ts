import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { seededRandom } from '../harness/random.ts'
import { listAll } from '../harness/upkeep.ts'
import { readItem } from '../harness/wire.ts'
import type { Instance } from './server-instances.ts'

/** The counts of a run. */
export interface Tally {
  rounds: number
  /** Items whose upload was acknowledged. */
  acknowledged: number
  /** Acknowledged items that are not listed exactly once, or whose bytes differ from the sent ones. */
  lost: number
  /** Items that are incomplete, refused but listed, or listed twice; and forms of which only some files are listed. */
  halfVisible: number
  /** Items whose deletion was acknowledged and that are listed or served again. */
  returned: number
}

type FaultKind = 'lost' | 'halfVisible' | 'returned'

interface SentFile {
  readonly name: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

/**
 * `open`: in progress or resumable. `unanswered`: the connection ended without a response. `refused`: received an
 * error, or not listed after its connection ended. `stored`: acknowledged or listed, until a client deletes it.
 */
type State = 'open' | 'unanswered' | 'refused' | 'stored'

/** The files of one request: all of them are stored, or none. A name identifies a file. */
export interface Sending {
  readonly files: readonly SentFile[]
  state: State
}

interface Item {
  readonly sending: Sending
  readonly name: string
  readonly sha256: string
  id: string | null
  removal: 'none' | 'requested' | 'acknowledged'
  /** Whether a check has found its bytes, or after its removal that they are gone. */
  isChecked: boolean
}

/** Records the requests of the clients and their responses, and compares the service with that record. */
export interface Ledger {
  /** Returns an integer below the limit, from the seed of the run. */
  readonly random: (below: number) => number
  readonly tally: Tally
  newSending(...lengths: number[]): Sending
  stored(sending: Sending, ids: readonly string[]): void
  /** The id of a file that is stored alone; null if it is not known. */
  idOf(sending: Sending): string | null
  /** Takes a random stored item for its removal; null if there is none. */
  takeForRemoval(): { readonly id: string; acknowledge(): void } | null
  /** After a check: the ids of all items that were ever stored, and of those that were deleted. */
  changes(): { readonly stored: readonly string[]; readonly deleted: readonly string[] }
  /** Whether a client has deleted the item, or tries to. */
  isRemoved(id: string): boolean
  /**
   * Checks all pages and the bytes of all listed items of an idle service, and settles every request whose outcome was
   * unknown. With `new`, it reads the bytes of new items only: for repeated checks, before one of `all`.
   */
  check(instance: Instance, scope?: 'all' | 'new'): Promise<void>
  /** Counts a violation and records it in words. */
  fault(kind: FaultKind, what: string): void
  /** The violations in words; empty if there are none. */
  readonly faults: readonly string[]
}

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Concurrent requests during a check. */
const atOnce = 8

export function createLedger(): Ledger {
  const random = seededRandom()
  const tally: Tally = { rounds: 0, acknowledged: 0, lost: 0, halfVisible: 0, returned: 0 }
  const faults: string[] = []
  const items = new Map<string, Item>()

  function fault(kind: FaultKind, what: string): void {
    tally[kind] += 1
    faults.push(`${kind}: ${what}`)
  }

  const isAcknowledged = ({ sending, removal }: Item) =>
    sending.state === 'stored' && removal !== 'acknowledged'

  function lookAt(item: Item, id: string, sound: boolean): void {
    const { name, sending, removal } = item
    if (item.id !== null && item.id !== id)
      fault('halfVisible', `${name} is listed as ${id} and was ${item.id}`)
    else if (removal === 'acknowledged') fault('returned', `${name} was deleted and is listed`)
    else if (sending.state === 'refused') fault('halfVisible', `${name} was refused and is listed`)
    else if (!sound)
      fault(
        sending.state === 'stored' ? 'lost' : 'halfVisible',
        `${name} has bytes that differ from the sent ones`,
      )
    item.id = id
  }

  function isListed(name: string, seen: ReadonlySet<Item>): boolean {
    const item = items.get(name)
    return item !== undefined && seen.has(item)
  }

  function settle(seen: ReadonlySet<Item>): void {
    for (const item of items.values()) {
      const { sending, name } = item
      const isSeen = seen.has(item)
      if (item.removal === 'requested') item.removal = isSeen ? 'none' : 'acknowledged'
      else if (isAcknowledged(item) && !isSeen) {
        fault('lost', `${name} was acknowledged and is not listed`)
        item.removal = 'acknowledged'
      }
      if (sending.state !== 'unanswered') continue
      const isWhole = sending.files.every((file) => isListed(file.name, seen) === isSeen)
      if (!isWhole) fault('halfVisible', `only some files of the form with ${name} are listed`)
    }
    for (const item of items.values()) {
      if (seen.has(item) && item.sending.state === 'open') item.sending.state = 'stored'
      if (item.sending.state === 'unanswered') item.sending.state = seen.has(item) ? 'stored' : 'refused'
    }
  }

  return {
    random,
    tally,
    fault,
    faults,

    newSending(...lengths) {
      const files = lengths.map((length) => ({ name: `${randomUUID()}.bin`, bytes: randomBytes(length) }))
      const sending: Sending = { files, state: 'open' }
      for (const { name, bytes } of files)
        items.set(name, {
          sending,
          name,
          sha256: sha256Of(bytes),
          id: null,
          removal: 'none',
          isChecked: false,
        })
      return sending
    },

    stored(sending, ids) {
      sending.state = 'stored'
      tally.acknowledged += sending.files.length
      for (const [index, { name }] of sending.files.entries()) {
        const item = items.get(name)
        if (item) item.id = ids[index] ?? null
      }
    },

    idOf({ files: [file], state }) {
      return state === 'stored' ? (items.get(file?.name ?? '')?.id ?? null) : null
    },

    takeForRemoval() {
      const removable = [...items.values()].filter((item) => isAcknowledged(item) && item.removal === 'none')
      const item = removable[random(removable.length)]
      if (!item?.id) return null
      item.removal = 'requested'
      item.isChecked = false
      return {
        id: item.id,
        acknowledge() {
          item.removal = 'acknowledged'
        },
      }
    },

    changes() {
      const stored = [...items.values()].filter(
        ({ id, sending }) => id !== null && sending.state === 'stored',
      )
      const deleted = stored.filter(({ removal }) => removal === 'acknowledged')
      return { stored: stored.map(({ id }) => id ?? ''), deleted: deleted.map(({ id }) => id ?? '') }
    },

    isRemoved: (id) => [...items.values()].some((item) => item.id === id && item.removal !== 'none'),

    async check(instance, scope = 'all') {
      const urls = await listAll(instance.server, instance.authorization)
      const seen = new Set<Item>()
      const checked = new Map(
        [...items.values()]
          .filter(({ isChecked, removal }) => scope === 'new' && isChecked && removal === 'none')
          .map((item) => [item.id, item]),
      )
      await Promise.all(
        Array.from({ length: atOnce }, async (_, lane) => {
          for (let at = lane; at < urls.length; at += atOnce) {
            const id = idOf(urls[at] ?? '')
            const known = checked.get(id)
            if (known) {
              seen.add(known)
              continue
            }
            const found = await fetchListed(instance, urls[at] ?? '')
            const item = items.get(found.filename ?? '')
            if (!item) fault('halfVisible', `${urls[at]} is listed and was never sent`)
            else if (seen.has(item)) fault('halfVisible', `${item.name} is listed twice`)
            else {
              seen.add(item)
              lookAt(item, id, found.sha256 === item.sha256)
              item.isChecked = true
            }
          }
        }),
      )
      for (const item of items.values()) {
        const { id, removal, isChecked } = item
        if (removal !== 'acknowledged' || id === null || (scope === 'new' && isChecked)) continue
        const { status } = await fetch(`${instance.server.url}/media/${id}`, { method: 'HEAD' })
        if (status !== 404) fault('returned', `${id} was deleted and receives ${status}`)
        item.isChecked = true
      }
      settle(seen)
    },
  }
}

const idOf = (url: string): string => /\/media\/(\w+)/.exec(new URL(url).pathname)?.[1] ?? ''

/** The name under which an item was sent, and the hash of its served bytes; null if they are not served. */
async function fetchListed({ server, authorization }: Instance, url: string) {
  const { pathname } = new URL(url)
  const id = idOf(url)
  const item = await readItem(await server.request(`/api/media/${id}`, { headers: { authorization } }))
  const response = await fetch(new URL(pathname, server.url))
  const sha256 = sha256Of(Buffer.from(await response.arrayBuffer()))
  const isSound = response.status === 200 && sha256 === item.sha256
  return { filename: item.filename, sha256: isSound ? sha256 : null }
}
