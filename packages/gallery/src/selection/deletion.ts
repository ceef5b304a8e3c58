import type { Client } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'
import { errorMessage, isUnauthorized } from '../service/errors.ts'

/** Deletes items after the person has confirmed it. */
export interface Deletion {
  /** The ids that wait for confirmation or are being deleted; null if the dialog is closed. */
  readonly pending: ReadonlySignal<readonly string[] | null>
  /** How many of them have been processed; null before the confirmation. */
  readonly processed: ReadonlySignal<number | null>
  /** Opens the dialog that asks for confirmation. */
  request(ids: readonly string[]): void
  cancel(): void
  confirm(): Promise<void>
}

/** Items of one request. */
const batchSize = 500

export interface DeletionResult {
  readonly deleted: readonly string[]
  readonly failed: number
  /** Of the last failure; empty if there was none. */
  readonly reason: string
}

export function createDeletion(
  client: Client,
  connection: Connection,
  onFinished: (result: DeletionResult) => Promise<void>,
): Deletion {
  const pending = signal<readonly string[] | null>(null)
  const processed = signal<number | null>(null)

  /** Resolves with the error, or with null if the items no longer exist. */
  async function deleteItems(ids: readonly string[]): Promise<unknown> {
    try {
      await connection.watch(() => client.deleteMany(ids))
      return null
    } catch (error) {
      return error
    }
  }

  return {
    pending,
    processed,
    request(ids) {
      if (ids.length > 0 && processed.value === null) pending.value = ids
    },
    cancel() {
      if (processed.value === null) pending.value = null
    },
    async confirm() {
      const ids = pending.value ?? []
      const deleted: string[] = []
      let reason = ''
      processed.value = 0
      for (let start = 0; start < ids.length; start += batchSize) {
        const batch = ids.slice(start, start + batchSize)
        const error = await deleteItems(batch)
        if (isUnauthorized(error)) break
        if (error === null) deleted.push(...batch)
        else reason = errorMessage(error)
        processed.value += batch.length
        if (connection.lost.value) break
      }
      await onFinished({ deleted, failed: ids.length - deleted.length, reason })
      processed.value = null
      pending.value = null
    },
  }
}
