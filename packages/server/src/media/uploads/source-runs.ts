/**
 * Cuts a stream into runs, each of which ends with the chunk after which `isLong` says so of its bytes and the
 * milliseconds that it took; each must be read to its end before the next. At least one.
 */
export async function* runsOf(
  source: AsyncIterable<Uint8Array>,
  isLong: (size: number, time: number) => boolean,
  now: () => number,
): AsyncGenerator<AsyncIterable<Uint8Array>, void, void> {
  const chunks = source[Symbol.asyncIterator]()
  let ended = false

  async function* run(): AsyncGenerator<Uint8Array, void, void> {
    const begun = now()
    for (let size = 0; size === 0 || !isLong(size, now() - begun); ) {
      const { done, value } = await chunks.next()
      if (done) {
        ended = true
        return
      }
      size += value.byteLength
      yield value
    }
  }

  try {
    do yield run()
    while (!ended)
  } finally {
    giveUp(chunks)
  }
}

/** The source until the signal; from then on it fails with the signal's reason, even while it waits for a chunk. */
export async function* until(
  signal: AbortSignal,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  const chunks = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await orAbort(signal, chunks.next())
      if (done) return
      yield value
    }
  } finally {
    giveUp(chunks)
  }
}

/** Tells a source that nothing more is wanted. It may be waiting for a chunk, so nobody waits for it. */
function giveUp(chunks: AsyncIterator<unknown>): void {
  chunks.return?.().catch(() => undefined)
}

/** As Promise.race, but leaves nothing behind on a signal that outlives many promises. */
function orAbort<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
