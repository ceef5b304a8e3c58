import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../../../test/harness/directory.ts'
import { isRunning, startTime, thisProcess } from '../src/processes.ts'
import { lockPaths, stateFiles } from '../src/upload-state.ts'

async function scene() {
  const directory = await temporaryDirectory()
  const files = stateFiles(directory.path, (message) => expect(message).toBe(''))
  return {
    path: directory.path,
    lock: (paths: readonly string[], owner = 'a') =>
      lockPaths(files, { owner, paths, activity: 'upload of these files' }),
    /** The lock of another process. */
    plant: (name: string, process: object, completedAt: number | null = null) =>
      writeFile(
        join(directory.path, `${name}.lock`),
        JSON.stringify({ process, owner: 'a', paths: ['/files'], isHeld: true, completedAt }),
      ),
    names: () => readdir(directory.path),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

test('of many runs that start at the same time, exactly one uploads', async () => {
  for (let round = 0; round < 5; round += 1) {
    await using at = await scene()
    const runs = await Promise.allSettled(Array.from({ length: 20 }, () => at.lock(['/files'])))
    const refused = runs.flatMap((run) => (run.status === 'rejected' ? [String(run.reason.message)] : []))
    expect(refused).toHaveLength(19)
    expect(new Set(refused)).toEqual(
      new Set([
        `another upload of these files is in progress: process ${process.pid}. Wait until it ends, or stop it and run the command again to continue.`,
      ]),
    )
    for (const run of runs) if (run.status === 'fulfilled') await run.value(false)
    expect(await at.names()).toEqual([])
  }
})

test.each([
  [['/files'], ['/files'], true],
  [['/files/a', '/files/b'], ['/files/b/c.txt'], true],
  [['/files/b/c.txt'], ['/other', '/files/'], true],
  [['/'], ['/files'], true],
  [['/files'], ['/files-2'], false],
  [['/files/..a'], ['/files'], true],
  [['/files/a'], ['/files/b'], false],
])('an upload of %j and one of %j are of the same files: %s', async (one, other, isRefused) => {
  await using at = await scene()
  await at.lock(one)
  const second = at.lock(other)
  if (isRefused) await expect(second).rejects.toThrow('another upload of these files is in progress')
  else await (await second)(false)
  await (await at.lock(other, 'another owner'))(false)
})

test('a path through a link is the same file', async () => {
  await using at = await scene()
  await using elsewhere = await temporaryDirectory()
  const link = join(elsewhere.path, 'link')
  await symlink(at.path, link)
  await at.lock([at.path])
  await expect(at.lock([link])).rejects.toThrow('another upload of these files is in progress')
})

test('a run that was completed since this process was started is not repeated; an earlier one is', async () => {
  await using at = await scene()
  const plant = (name: string, completedAt: number) => at.plant(name, thisProcess(), completedAt)
  await plant('earlier', startTime() - 1_000)
  await (await at.lock(['/files']))(true)
  await expect(at.lock(['/files'])).rejects.toThrow(
    `another upload of these files was completed while this one started: process ${process.pid}. To repeat it, run the command again.`,
  )
  await (await at.lock(['/other']))(false)
  // Where the tests have run for minutes, the earlier one is old and removed.
  expect((await at.names()).filter((name) => name !== 'earlier.lock')).toHaveLength(1)
  await plant('old', Date.now() - 400_000)
  await (await at.lock(['/other']))(false)
  expect(await at.names()).not.toContain('old.lock')
})

test('a run that was completed before the clock was set back does not prevent another one', async () => {
  await using at = await scene()
  await at.plant('later', thisProcess(), Date.now() + 3_600_000)
  await (await at.lock(['/files']))(false)
  expect(await at.names()).toEqual([])
})

test('locks of processes that have ended are removed, also if their number is used again', async () => {
  await using at = await scene()
  const child = spawn('true')
  await once(child, 'exit')
  await at.plant('ended', { host: hostname(), pid: child.pid, started: null })
  await at.plant('reused', { ...thisProcess(), started: 'another boot 1' })
  await writeFile(join(at.path, 'damaged.lock'), '{"process":')
  const release = await at.lock(['/files'])
  await release(false)
  expect(await at.names()).toEqual(['damaged.lock'])
})

test('a lock of another host is kept, and the message names its file', async () => {
  await using at = await scene()
  await at.plant('remote', { host: 'elsewhere', pid: 1, started: null })
  await expect(at.lock(['/files'])).rejects.toThrow(
    `process 1 on "elsewhere". Wait until it ends. If it was killed, remove ${join(at.path, 'remote.lock')}`,
  )
  expect(await at.names()).toEqual(['remote.lock'])
})

test('a process that has ended and was not collected is not running', async () => {
  // The shell replaces itself with sleep, which does not collect the other child.
  const shell = spawn('sh', ['-c', 'true & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [text] = await once(shell.stdout, 'data')
  const pid = Number(text)
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const tick = stat.split(') ')[1]?.split(' ')[19]
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  await expect
    .poll(() => isRunning({ host: hostname(), pid, started: `${boot} ${tick}` }), { timeout: 20_000 })
    .toBe(false)
  expect(isRunning(thisProcess())).toBe(true)
  shell.kill()
})
