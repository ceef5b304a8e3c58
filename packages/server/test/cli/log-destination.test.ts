import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../../../../test/harness/directory.ts'
import { until } from '../../../../test/harness/until.ts'
import { fileDestination, LogLines, pipeDestination } from '../../src/cli/log-lines.ts'

const describeLoss = (lines: number) => `${lines} dropped\n`

test('O3 a full pipe takes no bytes and is not waited for, although others write to it with waiting', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'log')
  execFileSync('mkfifo', [path])
  // Blocking, as a shell or a service manager opens it.
  const fd = openSync(path, constants.O_RDWR)
  const { write, writeLast } = pipeDestination(fd)
  const bytes = Buffer.alloc(100_000, 'x')
  let written = 0
  for (let now = write(bytes); now > 0; now = write(bytes)) written += now
  expect(written).toBeGreaterThan(4_095)
  expect(writeLast(bytes)).toBe(0)
  // The flag of the descriptor itself would hold for every process that shares it.
  const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? ''
  expect(Number.parseInt(flags, 8) & constants.O_NONBLOCK).toBe(0)
  expect(readSync(fd, Buffer.alloc(written))).toBe(written)
  expect(write(bytes)).toBeGreaterThan(0)
  closeSync(fd)
})

test('O3 lines reach a file in order, also those of a process that exits during a write', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'log')
  const fd = openSync(path, 'a')
  const log = new LogLines(fileDestination(fd), describeLoss)
  const lines = Array.from({ length: 3_000 }, (_, index) => `line ${index}\n`)
  for (const line of lines.slice(0, 2_000)) log.write(line)
  await until('the first lines', () => readFileSync(path, 'utf8').includes('line 1000\n'))
  for (const line of lines.slice(2_000)) log.write(line)
  log.flushLast()
  await until('all lines', () => readFileSync(path, 'utf8') === lines.join(''))
  expect(log.dropped).toBe(0)
  closeSync(fd)
})

test('O3 a file that cannot be written loses its lines, which are counted', async () => {
  const fd = openSync('/dev/full', 'w')
  const log = new LogLines(fileDestination(fd), describeLoss)
  log.write('x\ny\n')
  log.flushSync()
  await until('they are counted', () => {
    log.flushSync()
    return log.dropped === 2
  })
  closeSync(fd)
})
