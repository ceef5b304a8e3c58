/** How fast uploads go, smoothed over some seconds. */
export interface Speed {
  /** Takes a reading: bytes and files done so far, and those left. Milliseconds. */
  update(now: number, done: Amount, left: Amount): void
  readonly bytesPerSecond: number | null
  readonly secondsLeft: number | null
  /** Uploads stand still, and the time until they go on does not count. */
  pause(): void
}

interface Amount {
  readonly bytes: number
  readonly files: number
}

/** What a file costs beside its bytes, in bytes. */
const perFile = 16_384

/** In which time the weight of a reading falls to about a third. Seconds. */
const memory = 3

/** Before this much time there is not enough to tell. Seconds. */
const least = 1

export function createSpeed(): Speed {
  let last: { readonly now: number; readonly done: Amount } | null = null
  // Sums in which what is older counts less.
  let [seconds, bytes, work, workLeft] = [0, 0, 0, 0]
  const workOf = (amount: Amount) => amount.bytes + amount.files * perFile
  const known = () => seconds >= least && work > 0
  return {
    update(now, done, left) {
      workLeft = workOf(left)
      // What goes back, as after a lost connection, starts a new reading.
      if (last === null || workOf(done) < workOf(last.done)) {
        last = { now, done }
        return
      }
      const passed = (now - last.now) / 1000
      if (passed < 0.2) return
      const fade = Math.exp(-passed / memory)
      seconds = seconds * fade + passed
      bytes = bytes * fade + (done.bytes - last.done.bytes)
      work = work * fade + (workOf(done) - workOf(last.done))
      last = { now, done }
    },
    get bytesPerSecond() {
      return known() ? Math.max(0, bytes / seconds) : null
    },
    get secondsLeft() {
      return known() ? workLeft / (work / seconds) : null
    },
    pause() {
      last = null
    },
  }
}
