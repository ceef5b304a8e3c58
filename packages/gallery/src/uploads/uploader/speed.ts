/** The upload speed, averaged over a few seconds. */
export interface Speed {
  /** Adds a measurement: the amounts done so far and left, at a time in milliseconds. */
  update(now: number, done: Amount, left: Amount): void
  /** Null at first, and after some time without progress. */
  readonly bytesPerSecond: number | null
  readonly secondsLeft: number | null
  /** Excludes the time until the next measurement, because uploads are paused. */
  pause(): void
}

interface Amount {
  readonly bytes: number
  readonly files: number
}

/** The cost of a file in addition to its bytes. Bytes. */
const costPerFile = 16_384

/** The time after which a measurement's weight falls to 1/e. Seconds. */
const timeConstant = 3

/** There is no estimate before this much time. Seconds. */
const minSeconds = 1

/** There is no estimate after this long without progress. Seconds. */
const maxIdle = 10

export function createSpeed(): Speed {
  let last: { readonly now: number; readonly done: Amount } | null = null
  // Exponentially weighted sums.
  let [seconds, bytes, work, workLeft, idle] = [0, 0, 0, 0, 0]
  const workOf = (amount: Amount) => amount.bytes + amount.files * costPerFile
  const known = () => seconds >= minSeconds && work > 0 && idle < maxIdle
  return {
    update(now, done, left) {
      workLeft = workOf(left)
      // After a lost connection less may be done than before; start again.
      if (last === null || workOf(done) < workOf(last.done)) {
        last = { now, done }
        return
      }
      const passed = (now - last.now) / 1000
      if (passed < 0.2) return
      idle = workOf(done) > workOf(last.done) ? 0 : idle + passed
      const fade = Math.exp(-passed / timeConstant)
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
