/**
 * Values that are added and removed constantly, each with a small number as its key; a removed key is used again.
 *
 * A Set or a Map would keep removed values in memory. When V8 replaces the table of a Set, as `clear` does too, the old table refers to the
 * new one. Once a replaced table is in the old generation, it keeps all later tables and their values in memory until the next major
 * collection. The slab itself does not shrink: it keeps a slot for each value of its largest size.
 */
export class Slab<Value extends object> {
  readonly #slots: (Value | undefined)[] = []
  readonly #unusedKeys: number[] = []

  /** The number of values. */
  size(): number {
    return this.#slots.length - this.#unusedKeys.length
  }

  /** Returns the key of the value. */
  add(value: Value): number {
    const key = this.#unusedKeys.pop() ?? this.#slots.length
    this.#slots[key] = value
    return key
  }

  /** Returns the removed value; undefined if there is none with this key. */
  remove(key: number): Value | undefined {
    const value = this.#slots[key]
    if (value === undefined) return undefined
    this.#slots[key] = undefined
    this.#unusedKeys.push(key)
    return value
  }

  /** All values. They may be removed during the iteration. */
  *values(): IterableIterator<Value> {
    for (const value of this.#slots) if (value !== undefined) yield value
  }

  clear(): void {
    this.#slots.length = 0
    this.#unusedKeys.length = 0
  }
}
