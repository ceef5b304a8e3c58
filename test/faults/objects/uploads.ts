import type { Piece, Version } from './contents.ts'
import type { KeyRecord } from './object-ledger.ts'
import { Register, type Write } from './register.ts'

export interface Part {
  readonly number: number
  readonly etag: string
  readonly pieces: readonly Piece[]
  readonly size: number
}

/** A completion with certain parts, which may be sent several times. */
export interface Completion {
  readonly version: Version
  readonly parts: readonly Part[]
  readonly write: Write<Version>
  /** Requests that are in progress, or had no response. */
  pending: number
}

/** An object that is uploaded in parts. */
export class Upload {
  readonly id: string
  readonly key: KeyRecord
  /** The name of its versions. */
  readonly name: string
  /** Whether it has parts of the least size, and one after them. */
  readonly isLarge: boolean
  readonly parts = new Map<number, Register<Part>>()
  /** Those that may have happened, or may happen. */
  completions: readonly Completion[] = []
  /** `ended`: it is known that it is not open any more, but not why. */
  state: 'open' | 'completed' | 'aborted' | 'ended' = 'open'
  /** Abortions that are in progress, or had no response. */
  openAbortions = 0

  constructor(id: string, key: KeyRecord, name: string, isLarge: boolean) {
    this.id = id
    this.key = key
    this.name = name
    this.isLarge = isLarge
  }

  part(number: number): Register<Part> {
    const found = this.parts.get(number) ?? new Register<Part>()
    this.parts.set(number, found)
    return found
  }

  /** Whether a request may have ended it. */
  get mayHaveEnded(): boolean {
    return (
      this.state !== 'open' || this.openAbortions > 0 || this.completions.some(({ pending }) => pending > 0)
    )
  }

  settle(): void {
    for (const part of this.parts.values()) part.settle()
  }
}
