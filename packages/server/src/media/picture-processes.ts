import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import type { PictureAnswer, PictureTask } from './picture-task.ts'

/** The process ended before it answered: the task took too long or too much memory, or broke the decoder. */
export class PictureTooHard extends Error {
  override readonly name = 'PictureTooHard'
}

/** More tasks wait than may, this one has waited for too long, or no process can be started now. */
export class PicturesBusy extends Error {
  override readonly name = 'PicturesBusy'
}

export interface PictureProcesses {
  /** Throws PictureTooHard and PicturesBusy. */
  run(task: PictureTask): Promise<PictureAnswer>
  /** Ends the processes, whatever they do. */
  close(): void
}

interface Job {
  readonly task: PictureTask
  readonly resolve: (answer: PictureAnswer) => void
  readonly reject: (error: Error) => void
}

interface Place {
  readonly process: ChildProcess
  job: Job | null
  /** Ends the process when its task takes too long, or when it has had none for a while. */
  timer: NodeJS.Timeout
}

/** Milliseconds for which a process without a task is kept: starting one takes longer than most tasks. */
const idleTime = 15_000

/** Processes that take one task each, in the order in which they came; started when first needed, ended when idle. */
export function createPictureProcesses(limits: {
  /** Processes at once. */
  readonly processes: number
  /** Tasks that may wait. */
  readonly queue: number
  /** Milliseconds for which a task may wait. */
  readonly patience: number
  /** Milliseconds for one task, the start of its process included. */
  readonly timeout: number
  /** Bytes for one process. */
  readonly memory: number
  /** How much every other process goes before these, from 0 to 19. */
  readonly nice: number
}): PictureProcesses {
  const waiting: Job[] = []
  const places = new Set<Place>()
  let closed = false

  /** Null where the system has no room for a further process. */
  function start(): Place | null {
    // The extension is .ts in the sources and .js in the published build.
    const file = new URL(`./picture-process${extname(import.meta.url)}`, import.meta.url)
    let child: ChildProcess
    try {
      child = fork(file, [String(limits.nice), String(limits.memory)], {
        execArgv: [],
        serialization: 'advanced',
        // Standard error is the log of the service, and the decoder writes what is no log.
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      })
    } catch {
      return null
    }
    const place: Place = { process: child, job: null, timer: setTimeout(() => undefined) }
    places.add(place)
    child.on('message', (answer: PictureAnswer) => {
      place.job?.resolve(answer)
      place.job = null
      rest(place)
      next()
    })
    // Whether it never started, ended by itself or was ended: once.
    const gone = (how: string | number | null) => {
      if (!places.delete(place)) return
      clearTimeout(place.timer)
      // A process that never came to be says nothing of the picture.
      place.job?.reject(
        child.pid === undefined
          ? new PicturesBusy(`no process can be started: ${how}`)
          : new PictureTooHard(`the process that decodes pictures ended: ${how}`),
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

  function next(): void {
    const [job] = waiting
    if (job === undefined || closed) return
    // One that is being ended stands until it is gone, and must not take a task along.
    const free = [...places].find(({ job, process }) => job === null && process.connected && !process.killed)
    if (free === undefined && places.size >= limits.processes) return
    waiting.shift()
    const place = free ?? start()
    if (place === null) {
      job.reject(new PicturesBusy('no process can be started'))
    } else {
      place.job = job
      endAfter(place, limits.timeout)
      // A failure to send is an end of the process, and told as such.
      if (place.process.connected) place.process.send(job.task, () => undefined)
    }
    next()
  }

  return {
    run: (task) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(stopping())
        const job = { task, resolve, reject }
        waiting.push(job)
        next()
        const giveUp = () => {
          const place = waiting.indexOf(job)
          if (place >= 0) waiting.splice(place, 1)[0]?.reject(new PicturesBusy('too many pictures wait'))
        }
        if (waiting.length > limits.queue) giveUp()
        else if (waiting.includes(job)) setTimeout(giveUp, limits.patience).unref()
      }),
    close() {
      closed = true
      for (const job of waiting.splice(0)) job.reject(stopping())
      for (const { process } of places) process.kill('SIGKILL')
    },
  }
}

const stopping = () => new PicturesBusy('the service is stopping')
