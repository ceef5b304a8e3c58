import type { Client } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'
import { errorMessage, isNotFound, isUnauthorized } from '../service/errors.ts'

/** Deleting, which asks first. */
export interface Deletion {
  /** The ids that the person is asked about; null when nothing is asked. */
  readonly asked: ReadonlySignal<readonly string[] | null>
  /** How many of them are done; null while none is under way. */
  readonly done: ReadonlySignal<number | null>
  ask(ids: readonly string[]): void
  cancel(): void
  confirm(): Promise<void>
}

export interface DeletionResult {
  readonly removed: readonly string[]
  readonly failed: number
  /** Of the last failure; empty when there was none. */
  readonly reason: string
}

export function createDeletion(
  client: Client,
  connection: Connection,
  onRemoved: (outcome: DeletionResult) => Promise<void>,
): Deletion {
  const asked = signal<readonly string[] | null>(null)
  const done = signal<number | null>(null)

  /** Resolves with why it failed; null when the item is gone. */
  async function remove(id: string): Promise<unknown> {
    try {
      await connection.watch(() => client.delete(id))
      return null
    } catch (error) {
      return isNotFound(error) ? null : error
    }
  }

  return {
    asked,
    done,
    ask(ids) {
      if (ids.length > 0 && done.value === null) asked.value = ids
    },
    cancel() {
      if (done.value === null) asked.value = null
    },
    async confirm() {
      const ids = asked.value ?? []
      const removed: string[] = []
      let reason = ''
      done.value = 0
      for (const id of ids) {
        const error = await remove(id)
        if (isUnauthorized(error)) break
        if (error === null) removed.push(id)
        else reason = errorMessage(error)
        done.value += 1
        if (connection.lost.value) break
      }
      await onRemoved({ removed, failed: ids.length - removed.length, reason })
      done.value = null
      asked.value = null
    },
  }
}
