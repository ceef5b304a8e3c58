import { isUnreachable } from './postgres-errors.ts'

interface Pending<Key, Value> {
  readonly key: Key
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

export interface BatchedReads<Key, Value> {
  read(key: Key): Promise<Value>
}

/**
 * Reads many keys in one round trip. While `concurrency` reads are in progress, further keys are collected for the next one, so a
 * read always begins after its keys were requested. Equal keys of one read share its result. If the database cannot be reached, all
 * collected keys are rejected too: each further attempt would take seconds.
 */
export function createBatchedReads<Key, Value>(parts: {
  readonly concurrency: number
  /** The largest number of different keys in one read. */
  readonly limit: number
  readonly identify: (key: Key) => string | number
  /** Returns a value for each key, in their order. */
  readonly readAll: (keys: readonly Key[]) => Promise<readonly Value[]>
}): BatchedReads<Key, Value> {
  const { concurrency, limit, identify, readAll } = parts
  let pending: Pending<Key, Value>[] = []
  let inProgress = 0
  let isScheduled = false

  function start(): void {
    isScheduled = false
    while (inProgress < concurrency && pending.length > 0) void readBatch(takeBatch())
  }

  /** The pending reads of up to `limit` different keys, by key. */
  function takeBatch(): Pending<Key, Value>[][] {
    const batch = new Map<string | number, Pending<Key, Value>[]>()
    const left: Pending<Key, Value>[] = []
    for (const one of pending) {
      const name = identify(one.key)
      const same = batch.get(name)
      if (same) same.push(one)
      else if (batch.size < limit) batch.set(name, [one])
      else left.push(one)
    }
    pending = left
    return [...batch.values()]
  }

  async function readBatch(batch: Pending<Key, Value>[][]): Promise<void> {
    inProgress += 1
    try {
      const values = await readAll(batch.flatMap(([first]) => (first ? [first.key] : [])))
      for (const [index, same] of batch.entries()) {
        const value = values[index]
        if (value === undefined) throw new RangeError('a read returned too few values')
        for (const { resolve } of same) resolve(value)
      }
    } catch (error) {
      const rejected = isUnreachable(error) ? [...batch.flat(), ...pending.splice(0)] : batch.flat()
      for (const { reject } of rejected) reject(error)
    }
    inProgress -= 1
    start()
  }

  return {
    read: (key) =>
      new Promise((resolve, reject) => {
        pending.push({ key, resolve, reject })
        if (isScheduled || inProgress >= concurrency) return
        isScheduled = true
        // After all requests that arrived in this iteration of the event loop.
        setImmediate(start)
      }),
  }
}
