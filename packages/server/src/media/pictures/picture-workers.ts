import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { createPictureQueue } from './picture-queue.ts'
import { findPictureSandbox, type PictureSandbox } from './picture-sandbox.ts'
import type { PictureResult, PictureTask } from './picture-task.ts'

/** The process ended before it answered: the task took too long or too much memory, or broke the decoder. */
export class PictureOverLimits extends Error {
  override readonly name = 'PictureOverLimits'
}

/** More tasks wait than may, this one has waited for too long, or no process can be started now. */
export class PictureWorkersBusy extends Error {
  override readonly name = 'PictureWorkersBusy'
}

export interface PictureWorkers {
  /** Runs a task for a bucket, of which none waits for the tasks of another alone. Throws PictureOverLimits and PictureWorkersBusy. */
  run(task: PictureTask, bucket?: string): Promise<PictureResult>
  /** Ends the processes, whatever they do. */
  close(): void
}

interface Job {
  readonly bucket: string
  readonly task: PictureTask
  readonly resolve: (answer: PictureResult) => void
  readonly reject: (error: Error) => void
}

interface Place {
  readonly process: ChildProcess
  job: Job | null
  /** Its task gave way to another bucket's, and runs again later. */
  preempted: boolean
  /** Ends the process when its task takes too long, or when it has had none for a while. */
  timer: NodeJS.Timeout
}

/** Milliseconds for which a process without a task is kept: starting one takes longer than most tasks. */
const idleTime = 15_000

/** Milliseconds for which a bucket without a running task waits while another one has more than its share of processes. */
const grace = 1_000

/**
 * Processes that take one task each; started when first needed, ended when idle. Buckets take turns. One may use all processes
 * while no other waits; then it gives up what is more than half of them.
 */
export function createPictureWorkers(limits: {
  /** Processes at once. */
  readonly workers: number
  /** Tasks that may wait. */
  readonly queue: number
  /** Milliseconds for which a task may wait. */
  readonly queueTimeout: number
  /** Milliseconds for one task, the start of its process included. */
  readonly timeout: number
  /** Bytes for one process. */
  readonly memory: number
  /** How much every other process goes before these, from 0 to 19. */
  readonly niceness: number
}): PictureWorkers {
  const waiting = createPictureQueue<Job>(limits.queue)
  const share = Math.max(1, Math.floor(limits.workers / 2))
  const places = new Set<Place>()
  let closed = false
  let sandbox: PictureSandbox | null = null

  /** Null where the system has no room for a further process. */
  function start(): Place | null {
    // The extension is .ts in the sources and .js in the published build.
    const file = new URL(`./picture-worker${extname(import.meta.url)}`, import.meta.url)
    let child: ChildProcess
    try {
      sandbox ??= findPictureSandbox()
      child = fork(file, [String(limits.niceness), String(limits.memory)], {
        execPath: sandbox.execPath,
        execArgv: [...sandbox.execArgv],
        env: sandbox.env,
        serialization: 'advanced',
        // Standard error is the log of the service, and the decoder writes what is no log.
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      })
    } catch {
      return null
    }
    const place: Place = { process: child, job: null, preempted: false, timer: setTimeout(() => undefined) }
    places.add(place)
    child.on('message', (answer: PictureResult) => {
      place.job?.resolve(answer)
      place.job = null
      rest(place)
      next()
    })
    // Whether it never started, ended by itself or was ended: once.
    const gone = (how: string | number | null) => {
      if (!places.delete(place)) return
      clearTimeout(place.timer)
      if (place.job !== null && place.preempted && !closed) {
        enqueue(place.job, true)
        place.job = null
      }
      // A process that never came to be says nothing of the picture.
      place.job?.reject(
        child.pid === undefined
          ? new PictureWorkersBusy(`no process can be started: ${how}`)
          : new PictureOverLimits(`the process that decodes pictures ended: ${how}`),
      )
      next()
    }
    child.once('error', ({ message }) => gone(message))
    child.once('exit', (code, signal) => gone(signal ?? code))
    return place
  }

  const endAfter = (place: Place, time: number) => {
    clearTimeout(place.timer)
    place.timer = setTimeout(() => place.process.kill('SIGKILL'), time).unref()
  }
  const rest = (place: Place) => endAfter(place, idleTime)

  const running = (bucket: string) => [...places].filter(({ job }) => job?.bucket === bucket).length

  function next(): void {
    if (waiting.length === 0 || closed) return
    // One that is being ended stands until it is gone, and must not take a task along.
    const free = [...places].find(({ job, process }) => job === null && process.connected && !process.killed)
    if (free === undefined && places.size >= limits.workers) return
    const job = waiting.take(running, share)
    if (job === null) return
    const place = free ?? start()
    if (place === null) {
      job.reject(new PictureWorkersBusy('no process can be started'))
    } else {
      place.job = job
      endAfter(place, limits.timeout)
      // A failure to send ends the process, which is reported as such.
      if (place.process.connected) place.process.send(job.task, () => undefined)
    }
    next()
  }

  /** Ends the newest task of a bucket with more than its share, where another bucket waits and has none running. */
  function makeWay(): void {
    if (closed || !waiting.buckets().some((bucket) => running(bucket) === 0)) return
    if ([...places].some(({ process }) => process.killed)) return
    const last = [...places].findLast(({ job }) => job !== null && running(job.bucket) > share)
    if (last === undefined) return
    last.preempted = true
    last.process.kill('SIGKILL')
  }

  function enqueue(job: Job, first = false): void {
    waiting.add(job, first)
    setTimeout(() => {
      if (waiting.remove(job)) job.reject(new PictureWorkersBusy('the picture waited for too long'))
    }, limits.queueTimeout).unref()
  }

  return {
    run: (task, bucket = '') =>
      new Promise((resolve, reject) => {
        if (closed) return reject(stopping())
        const job = { bucket, task, resolve, reject }
        enqueue(job)
        next()
        waiting.overflow(job)?.reject(new PictureWorkersBusy('too many pictures wait'))
        if (waiting.length > 0) setTimeout(makeWay, grace).unref()
      }),
    close() {
      closed = true
      for (const job of waiting.clear()) job.reject(stopping())
      for (const { process } of places) process.kill('SIGKILL')
    },
  }
}

const stopping = () => new PictureWorkersBusy('the service is stopping')
