import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: NodeJS.GCFunction = runInNewContext('gc')

/** Runs a collection of the young generation; objects that survive two of them belong to the old generation. */
export const collectYoung = () => collect({ type: 'minor' })

/** Moves all objects in use to the old generation. */
export const collectAll = () => collect()

/** Counts objects that are in memory, in use or not. A weak reference keeps its object until the current job has ended. */
export function trackMemory(): { add(object: object): void; count(): number } {
  const references: WeakRef<object>[] = []
  return {
    add: (object) => references.push(new WeakRef(object)),
    count: () => references.filter((reference) => reference.deref() !== undefined).length,
  }
}
