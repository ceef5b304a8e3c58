import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ItemId } from '../../core/media-id.ts'
import type { Outcome } from '../../threads/serve-batches.ts'
import { isStored, type RequiredFile } from './stored-file.ts'
import { openVariantRows, type VariantRows, VariantsDamaged, variantDatabase } from './variant-rows.ts'

/** A name is `<id>.<key>`. */
export type VariantRequest =
  | {
      readonly kind: 'read'
      readonly name: string
      /** If this file is not stored, the output is null. */
      readonly required: RequiredFile | null
    }
  | { readonly kind: 'store'; readonly name: string; readonly bytes: Uint8Array }
  | { readonly kind: 'remove'; readonly id: ItemId }

type Reading = VariantRequest & { readonly kind: 'read' }

/** The bytes that were read, or null. */
export type VariantOutput = Uint8Array<ArrayBuffer> | null

export interface VariantDatabase {
  /** Runs the reads in one transaction and the changes in another one. Never throws. */
  apply(requests: readonly VariantRequest[]): Outcome<VariantOutput>[]
  /** As VariantRows.releaseSpace. */
  releaseSpace(): boolean
  close(): void
}

/** For commands, which neither create the database without need nor replace a damaged one: a server may be using it. */
export function openExistingVariants(directory: string): VariantDatabase {
  let rows: VariantRows | null = null
  const path = join(directory, variantDatabase)
  return createVariantDatabase(
    (needed) => {
      if (rows === null && (needed || existsSync(path))) rows = openVariantRows(directory)
      return rows
    },
    () => {
      rows?.close()
      rows = null
    },
  )
}

/**
 * For the server. Opens the database again after an operator has removed it. Removes a damaged database and creates a new
 * one; `onDamage` receives the reason.
 */
export function openServerVariants(directory: string, onDamage: (error: Error) => void): VariantDatabase {
  let rows: VariantRows | null = null
  const close = () => {
    rows?.close()
    rows = null
  }
  const open = () => {
    if (rows?.isCurrent()) return rows
    close()
    rows = openVariantRows(directory)
    return rows
  }
  const removeFiles = () => {
    const isReplaced = rows !== null && !rows.isCurrent()
    close()
    // Another worker has found the damage too.
    if (isReplaced) return
    for (const suffix of ['', '-wal', '-shm'])
      rmSync(join(directory, `${variantDatabase}${suffix}`), { force: true })
  }
  return createVariantDatabase(open, close, (error) => {
    onDamage(error)
    removeFiles()
  })
}

/**
 * `open` returns null if there is no database and none is `needed`. `onDamage` repairs the database, so that the requests
 * can be repeated.
 */
function createVariantDatabase(
  open: (needed: boolean) => VariantRows | null,
  close: () => void,
  onDamage?: (error: VariantsDamaged) => void,
): VariantDatabase {
  function attempt<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof VariantsDamaged) || onDamage === undefined) throw error
      onDamage(error)
      return work()
    }
  }

  /** One outcome for each request, in a transaction that succeeds or fails as a whole. */
  function outcomesOf(
    requests: readonly VariantRequest[],
    work: () => VariantOutput[],
  ): Outcome<VariantOutput>[] {
    try {
      return attempt(work).map((output) => ({ output }))
    } catch (error) {
      return requests.map(() => ({ error }))
    }
  }

  function readAll(requests: readonly Reading[]): VariantOutput[] {
    const rows = open(false)
    if (rows === null) return requests.map(() => null)
    const read = ({ name, required }: Reading) =>
      required === null || isStored(required) ? rows.read(name) : null
    // A transaction costs more than one read.
    return requests.length > 1 ? rows.transaction('BEGIN', () => requests.map(read)) : requests.map(read)
  }

  function changeAll(requests: readonly Exclude<VariantRequest, { kind: 'read' }>[]): VariantOutput[] {
    const rows = open(requests.some(({ kind }) => kind === 'store'))
    // Most items have no variants. Their removal must not need space on a full disk.
    const changes = requests.filter((request) => request.kind === 'store' || rows?.hasAny(request.id))
    if (rows !== null && changes.length > 0)
      rows.transaction('BEGIN IMMEDIATE', () => {
        for (const request of changes)
          if (request.kind === 'store') rows.store(request.name, request.bytes)
          else rows.remove(request.id)
      })
    return requests.map(() => null)
  }

  return {
    apply(requests) {
      const reads = requests.flatMap((request) => (request.kind === 'read' ? [request] : []))
      const changes = requests.flatMap((request) => (request.kind === 'read' ? [] : [request]))
      const read = outcomesOf(reads, () => readAll(reads)).values()
      const changed = outcomesOf(changes, () => changeAll(changes)).values()
      return requests.map(({ kind }) => {
        const { value } = kind === 'read' ? read.next() : changed.next()
        if (value === undefined) throw new RangeError('a request has no outcome')
        return value
      })
    },
    releaseSpace: () => attempt(() => open(false)?.releaseSpace() ?? false),
    close,
  }
}
