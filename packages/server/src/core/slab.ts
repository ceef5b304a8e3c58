/**
 * Values that are added and removed constantly, each with a small number as its key; a removed key is used again.
 *
 * A Set or a Map would keep removed values in memory. When V8 replaces the table of a Set, as `clear` does too, the old table refers to the
 * new one. Once a replaced table is in the old generation, it keeps all later tables and their values in memory until the next major
 * collection. The slab itself does not shrink: it keeps a slot for each value of its largest size.
 */
export interface Slab<Value extends object> {
  /** The number of values. */
  size(): number
  /** Returns the key of the value. */
  add(value: Value): number
  /** Returns the removed value; undefined if there is none with this key. */
  remove(key: number): Value | undefined
  /** All values. They may be removed during the iteration. */
  values(): IterableIterator<Value>
  clear(): void
}

export function createSlab<Value extends object>(): Slab<Value> {
  const slots: (Value | undefined)[] = []
  const unusedKeys: number[] = []

  return {
    size: () => slots.length - unusedKeys.length,

    add(value) {
      const key = unusedKeys.pop() ?? slots.length
      slots[key] = value
      return key
    },

    remove(key) {
      const value = slots[key]
      if (value === undefined) return undefined
      slots[key] = undefined
      unusedKeys.push(key)
      return value
    },

    *values() {
      for (const value of slots) if (value !== undefined) yield value
    },

    clear() {
      slots.length = 0
      unusedKeys.length = 0
    },
  }
}
