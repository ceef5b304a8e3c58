/**
 * Splits a source into segments. A segment ends after the first buffer for which `isFull` is true, given the segment's
 * bytes and milliseconds so far; the first one began at `since`. Each segment must be read to its end before the next; an empty source has one.
 */
export async function* splitSource(
  source: AsyncIterable<Uint8Array>,
  isFull: (bytes: number, milliseconds: number) => boolean,
  now: () => number,
  since = now(),
): AsyncGenerator<AsyncIterable<Uint8Array>, void, void> {
  const buffers = source[Symbol.asyncIterator]()
  let ended = false
  let start = since

  async function* segment(): AsyncGenerator<Uint8Array, void, void> {
    for (let bytes = 0; bytes === 0 || !isFull(bytes, now() - start); ) {
      const { done, value } = await buffers.next()
      if (done) {
        ended = true
        return
      }
      bytes += value.byteLength
      yield value
    }
  }

  try {
    do {
      yield segment()
      start = now()
    } while (!ended)
  } finally {
    closeSource(buffers)
  }
}

/** The source, which throws the signal's reason once the signal is aborted, also while it waits for bytes. */
export async function* abortable(
  signal: AbortSignal,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  const buffers = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await orAbort(signal, buffers.next())
      if (done) return
      yield value
    }
  } finally {
    closeSource(buffers)
  }
}

/** Does not wait: `return` of a generator resolves only after its pending `next`, which may never resolve. */
function closeSource(buffers: AsyncIterator<unknown>): void {
  buffers.return?.().catch(() => undefined)
}

/** Promise.race, but removes its listener: the signal outlives many promises. */
function orAbort<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
