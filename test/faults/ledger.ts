import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { seededRandom } from '../harness/random.ts'
import { listAll } from '../harness/upkeep.ts'
import { readMedia } from '../harness/wire.ts'
import type { Life } from './lives.ts'

/** What a run has seen. */
export interface Tally {
  rounds: number
  /** Items whose storing was answered with success. */
  acknowledged: number
  /** Of those: not listed exactly once, or their bytes are not those that were sent. */
  lost: number
  /** Listed and not whole, listed although refused, or listed twice; and forms of which some files are listed. */
  halfVisible: number
  /** Answered as deleted and seen again. */
  returned: number
}

type FaultKind = 'lost' | 'halfVisible' | 'returned'

interface SentFile {
  readonly name: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

/**
 * `open`: under way, or may be gone on with. `unanswered`: the connection ended. `refused`: answered with an error, or
 * not there after its connection had ended. `stored` is for ever, until somebody deletes it.
 */
type State = 'open' | 'unanswered' | 'refused' | 'stored'

/** The files of one request: all of them are stored, or none. */
export interface Sending {
  readonly files: readonly SentFile[]
  state: State
}

interface Item {
  readonly sending: Sending
  readonly name: string
  readonly sha256: string
  id: string | null
  removal: 'none' | 'asked' | 'answered'
}

/** Keeps what clients sent and what they were answered, and holds the service to it. */
export interface Ledger {
  /** Whole numbers below a limit; every choice of a run comes from its seed. */
  readonly random: (below: number) => number
  readonly tally: Tally
  newSending(...lengths: number[]): Sending
  stored(sending: Sending, ids: readonly string[]): void
  /** Takes some stored item for its removal; null when there is none. */
  takeForRemoval(): { readonly id: string; answered(): void } | null
  /** Looks at everything that a quiet service lists; from here on what was in doubt is settled. */
  check(life: Life): Promise<void>
  /** Counts what went against the promise, in words. */
  fault(kind: FaultKind, what: string): void
  /** In words; empty when the promise was held. */
  readonly faults: readonly string[]
}

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Requests at a time while everything is looked at. */
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

  const isKept = ({ sending, removal }: Item) => sending.state === 'stored' && removal !== 'answered'

  function lookAt(item: Item, id: string, sound: boolean): void {
    const { name, sending, removal } = item
    if (item.id !== null && item.id !== id)
      fault('halfVisible', `${name} is listed as ${id} and was ${item.id}`)
    else if (removal === 'answered') fault('returned', `${name} was deleted and is listed`)
    else if (sending.state === 'refused') fault('halfVisible', `${name} was refused and is listed`)
    else if (!sound) fault(sending.state === 'stored' ? 'lost' : 'halfVisible', `${name} has other bytes`)
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
      if (item.removal === 'asked') item.removal = isSeen ? 'none' : 'answered'
      else if (isKept(item) && !isSeen) {
        fault('lost', `${name} was answered as stored and is not listed`)
        item.removal = 'answered'
      }
      if (sending.state !== 'unanswered') continue
      const isWhole = sending.files.every((file) => isListed(file.name, seen) === isSeen)
      if (!isWhole) fault('halfVisible', `of the form with ${name} some files are listed`)
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
        items.set(name, { sending, name, sha256: sha256Of(bytes), id: null, removal: 'none' })
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

    takeForRemoval() {
      const kept = [...items.values()].filter((item) => isKept(item) && item.removal === 'none')
      const item = kept[random(kept.length)]
      if (!item?.id) return null
      item.removal = 'asked'
      return {
        id: item.id,
        answered() {
          item.removal = 'answered'
        },
      }
    },

    async check(life) {
      const urls = await listAll(life.server, life.authorization)
      const seen = new Set<Item>()
      await Promise.all(
        Array.from({ length: atOnce }, async (_, lane) => {
          for (let at = lane; at < urls.length; at += atOnce) {
            const found = await fetchListed(life, urls[at] ?? '')
            const item = items.get(found.filename ?? '')
            if (!item) fault('halfVisible', `${urls[at]} is listed and was never sent`)
            else if (seen.has(item)) fault('halfVisible', `${item.name} is listed twice`)
            else {
              seen.add(item)
              lookAt(item, found.id, found.sha256 === item.sha256)
            }
          }
        }),
      )
      for (const { id, removal } of items.values()) {
        if (removal !== 'answered' || id === null) continue
        const { status } = await fetch(`${life.server.url}/media/${id}`, { method: 'HEAD' })
        if (status !== 404) fault('returned', `${id} was deleted and is answered with ${status}`)
      }
      settle(seen)
    },
  }
}

/** The name under which an item was sent, and the hash of the bytes that are served now: null where they are not. */
async function fetchListed({ server, authorization }: Life, url: string) {
  const { pathname } = new URL(url)
  const id = /\/media\/(\w+)/.exec(pathname)?.[1] ?? ''
  const item = await readMedia(await server.request(`/api/media/${id}`, { headers: { authorization } }))
  const answer = await fetch(new URL(pathname, server.url))
  const sha256 = sha256Of(Buffer.from(await answer.arrayBuffer()))
  const isSound = answer.status === 200 && sha256 === item.sha256
  return { id, filename: item.filename, sha256: isSound ? sha256 : null }
}
