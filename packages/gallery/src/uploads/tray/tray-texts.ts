import { formatCount } from '../../format/count.ts'
import { formatDuration } from '../../format/duration.ts'
import { formatSize } from '../../format/size.ts'
import { strings } from '../../strings.ts'
import type { UploadsView } from '../uploads-view.ts'

/** What the list of uploads says first. `reading`: files found so far in folders that are being read. */
export function headlineOf({ totals, waitingForServer }: UploadsView, reading: number | null): string {
  const { uploads } = strings
  const { all, left, done, failed, needed, paused } = totals
  if (left > paused) return waitingForServer ? uploads.waitingForServer : uploads.sending(done, all)
  if (reading !== null) return uploads.reading(reading)
  if (paused > 0) return uploads.paused(paused)
  if (needed > 0) return uploads.needed(needed)
  if (failed > 0) return uploads.failed(failed)
  return done > 0 ? uploads.finished(done) : uploads.nothing
}

/** Bytes, speed and time left, as far as they are known; once all have ended, how many are stored where some are not. */
export function progressLineOf({ totals, bytesPerSecond, secondsLeft, ...view }: UploadsView): string {
  const { uploads } = strings
  const { left, done, all, failed, paused, sentBytes, allBytes } = totals
  if (left === 0) return done > 0 && done < all ? uploads.partly(done, all) : ''
  const moving = left > paused && !view.waitingForServer
  return [
    ...(moving ? [] : [uploads.bytes(formatCount(done), strings.files(all))]),
    uploads.bytes(formatSize(sentBytes), formatSize(allBytes)),
    ...(moving && bytesPerSecond !== null ? [uploads.speed(formatSize(Math.round(bytesPerSecond)))] : []),
    ...(moving && secondsLeft !== null ? [uploads.timeLeft(formatDuration(secondsLeft))] : []),
    ...(failed > 0 ? [uploads.notDone(failed)] : []),
  ].join(' · ')
}
