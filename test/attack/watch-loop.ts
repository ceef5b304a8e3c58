import { renameSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

// Loaded before the service (--import). Writes the longest turn of the event loop since SIGUSR2 into the file TEST_LOOP_FILE: the
// milliseconds of CPU time of the main thread between two runs of a timer. Time in which others have the CPU does not count.

const file = process.env['TEST_LOOP_FILE']
if (isMainThread && file !== undefined) {
  let [longest, last] = [0, cpu()]
  // The test never reads a file that is written in part.
  const write = () => {
    writeFileSync(`${file}.new`, longest.toFixed(1))
    renameSync(`${file}.new`, file)
  }
  setInterval(() => {
    const now = cpu()
    if (now - last > longest) {
      longest = now - last
      write()
    }
    last = now
  }, 2).unref()
  process.on('SIGUSR2', () => {
    ;[longest, last] = [0, cpu()]
    write()
  })
}

function cpu(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
