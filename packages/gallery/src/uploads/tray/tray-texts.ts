import { formatCount } from '../../format/count.ts'
import { formatSize } from '../../format/size.ts'
import { strings } from '../../strings.ts'
import type { UploadsView } from '../uploads-view.ts'

/** The heading of the list of uploads. `reading`: the number of files found so far in folders that are being read. */
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

/** Bytes, speed and time left while files are left; afterwards how many were uploaded, if not all were. */
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

/** An estimated duration, rounded. */
export function formatDuration(seconds: number): string {
  const { uploads } = strings
  if (seconds < 5) return uploads.fewSeconds
  if (seconds < 55) return uploads.seconds(Math.ceil(seconds / 5) * 5)
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 60) return uploads.minutes(minutes)
  return uploads.hours(Math.floor(minutes / 60), minutes % 60)
}
