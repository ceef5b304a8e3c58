import { randomUUID } from 'node:crypto'
import type { Ledger } from '../ledger.ts'
import type { Version } from './contents.ts'
import { Register, type Window, type Write } from './register.ts'
import type { Upload } from './uploads.ts'

/** What the key of an object may name. */
export class KeyRecord {
  readonly key: string
  readonly register = new Register<Version>()
  /** Acknowledged writes under a condition. */
  readonly created: Write<Version>[] = []
  readonly replacedOnce = new Set<string>()
  /** Entity tags that it ever had or may get: no two items of it have the same. */
  readonly etags = new Set<string>()

  constructor(key: string) {
    this.key = key
  }
}

const names = [
  'a',
  'a/b',
  'a/b/c.bin',
  'a b+c%20&d.txt',
  'Größe/ü.txt',
  '日本/😀.bin',
  'folder/one.txt',
  'folder/two.txt',
  'folder/',
  'z.jpg',
  '_item',
  '_items',
]

/** Records what clients of the S3 protocol requested and received, beside the ledger that counts the violations. */
export class ObjectLedger {
  readonly ledger: Ledger
  readonly keys: ReadonlyMap<string, KeyRecord> = new Map(names.map((key) => [key, new KeyRecord(key)]))
  /** Uploads without a key, by their names. */
  readonly unkeyed = new Map<string, Register<Version>>()
  uploads: Upload[] = []
  /** Creations of uploads in parts that had no response, and that were not found since. */
  lostCreations = 0
  readonly #versions = new Map<string, Version>()

  constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  random(below: number): number {
    return this.ledger.random(below)
  }

  any<T>(all: readonly T[]): T | undefined {
    return all[this.random(all.length)]
  }

  anyKey(): KeyRecord {
    const key = this.any([...this.keys.values()])
    if (key === undefined) throw new TypeError('there are no keys')
    return key
  }

  newName(): string {
    return `v-${randomUUID()}`
  }

  /** Knows a version from now on. */
  know(key: KeyRecord | null, version: Version): Version {
    this.#versions.set(`${version.name} ${version.etag}`, version)
    key?.etags.add(version.etag)
    return version
  }

  version(name: string, etag: string): Version | null {
    return this.#versions.get(`${name} ${etag}`) ?? null
  }

  fault(...fault: Parameters<Ledger['fault']>): void {
    this.ledger.fault(...fault)
  }

  acknowledged(): void {
    this.ledger.tally.acknowledged += 1
  }

  /** A value that was read. */
  compare(what: string, register: Register<Version>, window: Window, found: Version | null): void {
    const possible = register.possible(window)
    if (possible.some((value) => value === found)) return
    const [is, could] = [nameOf(found), possible.map(nameOf).join(' or ')]
    const kind =
      found !== null && possible.every((value) => value === null) ? ('returned' as const) : ('lost' as const)
    this.fault(kind, `${what} is ${is}, and could be ${could}`)
  }

  forgetEnded(): void {
    this.uploads = this.uploads.filter(({ state }) => state === 'open')
  }

  /** After all requests have ended: those without a response cannot happen any more. */
  settle(): void {
    for (const { register } of this.keys.values()) register.settle()
    for (const register of this.unkeyed.values()) register.settle()
  }
}

const nameOf = (version: Version | null): string =>
  version === null ? 'absent' : `${version.name.slice(0, 10)} with ${version.size} bytes`
