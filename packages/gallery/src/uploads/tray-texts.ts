import { formatSize } from '../format.ts'
import { formatCount } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import type { UploadsView } from './uploads-view.ts'

/**
 * The heading of the list of uploads. `filesFound` is the number of files found so far in the folders that are being read,
 * null while no folder is read.
 */
export function headlineOf({ totals, waitingForServer }: UploadsView, filesFound: number | null): string {
  const { uploads } = strings
  const { all, left, done, failed, unavailable, paused } = totals
  if (left > paused) return waitingForServer ? uploads.waitingForServer : uploads.sending(done, all)
  if (filesFound !== null) return uploads.reading(filesFound)
  if (paused > 0) return uploads.paused(paused)
  if (unavailable > 0) return uploads.toChooseAgain(unavailable)
  if (failed > 0) return uploads.failed(failed)
  return done > 0 ? uploads.finished(done) : uploads.nothing
}

/**
 * The line below the heading. It shows bytes, speed and remaining time until no file is left to send. Then it shows how many
 * files were uploaded, and is empty if all or none were.
 */
export function progressLineOf(view: UploadsView): string {
  const { totals, bytesPerSecond, secondsLeft, waitingForServer } = view
  const { uploads } = strings
  const { left, done, all, failed, paused, sentBytes, allBytes } = totals
  if (left === 0) return done > 0 && done < all ? uploads.partly(done, all) : ''
  const isSending = left > paused && !waitingForServer
  return [
    ...(isSending ? [] : [uploads.partOf(formatCount(done), strings.files(all))]),
    uploads.partOf(formatSize(sentBytes), formatSize(allBytes)),
    ...(isSending && bytesPerSecond !== null ? [uploads.speed(formatSize(Math.round(bytesPerSecond)))] : []),
    ...(isSending && secondsLeft !== null ? [uploads.timeLeft(formatDuration(secondsLeft))] : []),
    ...(failed > 0 ? [uploads.notDone(failed)] : []),
  ].join(' · ')
}

/** A duration, rounded up: below 5 s `a few seconds`, below 55 s to 5 s, otherwise to full minutes. */
export function formatDuration(seconds: number): string {
  const { uploads } = strings
  if (seconds < 5) return uploads.fewSeconds
  if (seconds < 55) return uploads.seconds(Math.ceil(seconds / 5) * 5)
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 60) return uploads.minutes(minutes)
  return uploads.hours(Math.floor(minutes / 60), minutes % 60)
}
