import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: NodeJS.GCFunction = runInNewContext('gc')

/** Runs a collection of the young generation; objects that survive two of them belong to the old generation. */
export const collectYoung = () => collect({ type: 'minor' })

/** Moves all objects in use to the old generation. */
export const collectAll = () => collect()

/** Bytes. */
const markSize = 100_000

/**
 * Counts objects in memory, in use or not, by buffers that they refer to: collections of the young generation do not clear weak references
 * in all versions of Node.js.
 */
export function countInMemory(): { mark<T extends object>(object: T): T; count(): number } {
  const before = getHeapStatistics().external_memory
  return {
    mark: (object) => Object.assign(object, { mark: new ArrayBuffer(markSize) }),
    count() {
      // A buffer is freed on another thread, and counted as free by a later collection.
      for (let i = 0; i < 4; i += 1) collectYoung()
      return Math.round((getHeapStatistics().external_memory - before) / markSize)
    },
  }
}
