/** A value that changes, in the form that React (`useSyncExternalStore`) and other libraries subscribe to. */
export class Store<T> {
  #state: T
  readonly #listeners = new Set<() => void>()

  constructor(state: T) {
    this.#state = state
  }

  /** The current value. A change replaces it; an object that was read before never changes. */
  get state(): T {
    return this.#state
  }

  /** Calls the listener after each change. Returns a function that ends the subscription. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  protected replaceState(state: T): void {
    this.#state = state
    for (const listener of [...this.#listeners]) listener()
  }
}
