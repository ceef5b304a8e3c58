/** Numbers of events, in their order. */
let clock = 0
export const tick = (): number => ++clock

/**
 * `open`: in progress, or without a response, so that it may still happen. `acknowledged`: it has happened. `refused`: it has not. `unknown`: it has happened
 * before its end, or not at all.
 */
type State = 'open' | 'acknowledged' | 'unknown' | 'refused'

/** A request that replaces the value; a deletion writes null. */
export class Write<Value> {
  readonly value: Value | null
  /** What it replaces, if it replaces nothing else. */
  readonly only: ((value: Value) => boolean) | null
  readonly start = tick()
  end = Number.POSITIVE_INFINITY
  state: State = 'open'

  constructor(value: Value | null, only: ((value: Value) => boolean) | null) {
    this.value = value
    this.only = only
  }

  settle(state: Exclude<State, 'open'>): void {
    this.state = state
    this.end = tick()
  }
}

/** From the start of a request to its response. */
export interface Window {
  readonly start: number
  readonly end: number
}

/**
 * The values that something with one value may have, after requests at the same time and without responses: those of all requests that no acknowledged
 * one has certainly replaced. All values of a register differ.
 */
export class Register<Value> {
  #writes: Write<Value>[] = []

  constructor() {
    const first = new Write<Value>(null, null)
    first.settle('acknowledged')
    this.#writes.push(first)
  }

  /** To be called before the request is sent. */
  begin(value: Value | null, only: ((value: Value) => boolean) | null = null): Write<Value> {
    const write = new Write(value, only)
    this.#writes.push(write)
    return write
  }

  /** The writes whose value a request in this time may have read. */
  #possible({ start, end }: Window): Write<Value>[] {
    return this.#writes.filter(
      (write) => write.state !== 'refused' && write.start < end && !this.#isReplaced(write, start),
    )
  }

  #isReplaced(write: Write<Value>, at: number): boolean {
    return this.#writes.some((later) => {
      if (later === write || later.state !== 'acknowledged' || later.end >= at) return false
      if (later.only === null) return later.start > write.end
      return write.value !== null && later.only(write.value)
    })
  }

  possible(window: Window): readonly (Value | null)[] {
    return this.#possible(window).map(({ value }) => value)
  }

  /** The value that it has, if that is certain. */
  certain(window: Window): Value | null | undefined {
    const [first, ...others] = this.possible(window)
    return others.length === 0 ? first : undefined
  }

  /** Whether it may have been null between the starts and the ends of these writes. */
  mayHaveBeenNull(...writes: readonly Write<Value>[]): boolean {
    const from = Math.min(...writes.map(({ start }) => start))
    const to = Math.max(...writes.map(({ end }) => end))
    return this.#writes.some(
      (write) => write.value === null && write.state !== 'refused' && write.start < to && write.end > from,
    )
  }

  /** An idle service has this value. What may still happen stays. */
  observed(value: Value | null): void {
    const open = this.#writes.filter(({ state }) => state === 'open')
    const now = new Write(value, null)
    now.settle('acknowledged')
    this.#writes = [now, ...open]
  }

  /** No process is left that could continue a request without a response. */
  settle(): void {
    for (const write of this.#writes) if (write.state === 'open') write.settle('unknown')
  }
}
