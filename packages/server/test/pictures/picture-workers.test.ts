import { execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtempDisposable, open, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { crowdedTiff } from '../../../../test/harness/pictures.ts'
import { findPictureSandbox, PictureWorkers } from '../../src/pictures/picture-workers.ts'

const opened: PictureWorkers[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const workers of opened.splice(0)) workers.close()
})

function start(limits: Partial<ConstructorParameters<typeof PictureWorkers>[0]> = {}): PictureWorkers {
  const workers = new PictureWorkers({
    workers: 1,
    queue: 10,
    queueTimeout: 20_000,
    timeout: 20_000,
    memory: 1e9,
    niceness: 5,
    ...limits,
  })
  opened.push(workers)
  return workers
}

const form = { width: 10, height: 10, fit: 'contain', format: 'webp' } as const
const shrink = (picture: string) =>
  ({ type: 'resize', picture, form, maxPixels: 1e6, recorded: null, extraction: null }) as const

const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
const others: Readonly<Record<string, string>> = {
  svg,
  ppm: 'P3 1 1 255 255 0 0',
  csv: '1,2\n3,4\n',
  pdf: '%PDF-1.7\n%%EOF',
}

const onLinux = process.platform === 'linux'

test.runIf(onLinux)(
  'V11 a worker has a limit of its heap, which synchronous work cannot exceed',
  async () => {
    await start({ memory: 600 * 2 ** 20 }).run(shrink('/dev/null'))
    const children = readdirSync('/proc/self/task').flatMap((thread) =>
      readFileSync(`/proc/self/task/${thread}/children`, 'utf8').trim().split(' '),
    )
    const commands = children.filter(Boolean).map((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8'))
    expect(commands.some((command) => command.includes('--max-old-space-size=300\0'))).toBe(true)
  },
)

describe('V11 the sandbox of a process that decodes pictures', () => {
  /** Reports its environment and privileges, and which operations succeed, in scripts and in native code. */
  const probe = `
    const { createRequire } = await import('node:module')
    const { readFileSync, writeFileSync } = await import('node:fs')
    const { connect } = await import('node:net')
    const sharp = createRequire(process.argv[2])('sharp')
    const picture = sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } }).png()
    const done = (trying) => trying().then(() => 'done', (error) => error.code ?? 'failed')
    const listener = JSON.parse(process.argv[4])
    process.on('SIGXFSZ', () => undefined)
    process.send({
      environment: Object.keys(process.env).filter((name) => name !== 'VIPSHOME'),
      decoded: (await picture.toBuffer()).length > 0,
      script: await done(async () => writeFileSync(process.argv[3], 'x')),
      spawn: await done(async () => (await import('node:child_process')).execFileSync('/bin/true')),
      network: await done(() => new Promise((resolve, reject) => connect(listener).on('connect', resolve).on('error', reject))),
      privileges: /NoNewPrivs:\\t(\\d)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1],
    })
    await picture.toFile(process.argv[3]).catch(() => undefined)
    process.send('ended')`

  /** Node.js 26 refuses connections itself. With this flag, the probe tests the kernel. */
  const allowNetwork = process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []

  test.skipIf(!onLinux)(
    'gives it an empty environment, no write access, and no network if the system supports that',
    async () => {
      await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
      const script = join(directory.path, 'probe.mjs')
      const written = join(directory.path, 'written.png')
      await writeFile(script, probe)
      const listener = createServer().listen(0, '127.0.0.1')
      await once(listener, 'listening')
      const { execPath, execArgv, env, enforced } = findPictureSandbox()
      const child = fork(script, [import.meta.filename, written, JSON.stringify(listener.address())], {
        execPath,
        execArgv: [...execArgv, ...allowNetwork],
        env,
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      })
      const [found] = await once(child, 'message')
      await once(child, 'exit')
      listener.close()
      expect(found).toEqual({
        environment: [],
        decoded: true,
        script: 'ERR_ACCESS_DENIED',
        spawn: 'ERR_ACCESS_DENIED',
        network: enforced.noNetwork ? 'ENETUNREACH' : 'done',
        privileges: enforced.noWrite ? '1' : expect.any(String),
      })
      const size = await stat(written).then(
        (file) => file.size,
        () => 0,
      )
      if (enforced.noWrite) expect(size).toBe(0)
      // Debian supports all of it, except a network namespace in some containers.
      if (existsSync('/etc/debian_version')) expect(enforced.noWrite).toBe(true)
    },
  )
})

describe('V12 buckets share the processes', () => {
  test('a bucket whose tasks never end does not delay another bucket', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const endless = join(directory.path, 'endless')
    // A reader of the FIFO waits for a writer.
    execFileSync('/usr/bin/mkfifo', [endless])
    // The others wait for three preemptions and the start of a process after each.
    const workers = start({ workers: 2, queue: 8, queueTimeout: 120_000, timeout: 120_000 })
    let ended = 0
    const greedy = Promise.allSettled(
      Array.from({ length: 8 }, async () => {
        await workers.run(shrink(endless), 'greedy').finally(() => {
          ended += 1
        })
      }),
    )
    for (const bucket of ['modest', 'other', 'modest'])
      expect(await workers.run(shrink('/nowhere'), bucket)).toEqual({ outcome: 'unreadable' })
    expect(ended).toBe(0)
    workers.close()
    await greedy
  })

  test('with one process, a task that never ends gives way to another bucket, and is run again', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const endless = join(directory.path, 'endless')
    execFileSync('/usr/bin/mkfifo', [endless])
    const workers = start({ workers: 1, queueTimeout: 120_000, timeout: 120_000 })
    const greedy = Promise.allSettled([workers.run(shrink(endless), 'greedy')])
    for (const bucket of ['modest', 'other'])
      expect(await workers.run(shrink('/nowhere'), bucket)).toEqual({ outcome: 'unreadable' })
    workers.close()
    expect(await greedy).toMatchObject([{ reason: { message: 'the service is stopping' } }])
  })

  test('a task that was preempted preempts in its turn', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const [slow, endless] = ['slow', 'endless'].map((name) => join(directory.path, name)) as [string, string]
    execFileSync('/usr/bin/mkfifo', [slow, endless])
    const workers = start({ workers: 1, queueTimeout: 120_000, timeout: 120_000 })
    const modest = workers.run(shrink(slow), 'modest')
    const greedy = Promise.allSettled([workers.run(shrink(endless), 'greedy')])
    let isDone = false
    const done = modest.finally(() => {
      isDone = true
    })
    const hasReader = async (path: string) => {
      const writer = await open(path, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => null)
      await writer?.close()
      return writer !== null
    }
    await vi.waitUntil(() => hasReader(endless), 60_000)
    // Each close is the end of the file for one of the decoders.
    await vi.waitUntil(() => hasReader(slow).then(() => isDone), 60_000)
    expect(await done).toEqual({ outcome: 'unreadable' })
    workers.close()
    await greedy
  })

  test('a bucket that fills the queue leaves room for another one', async () => {
    const workers = start({ queue: 2 })
    const greedy = Promise.allSettled(
      Array.from({ length: 6 }, () => workers.run(shrink('/nowhere'), 'greedy')),
    )
    const modest = workers.run(shrink('/nowhere'), 'modest')
    expect(await modest).toEqual({ outcome: 'unreadable' })
    expect((await greedy).map(({ status }) => status)).toContain('rejected')
  })
})

describe('V16 tasks that run ahead of requests', () => {
  test('one is preempted if a task of a request waits, and none begins while such a task runs or waits', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const endless = join(directory.path, 'endless')
    execFileSync('/usr/bin/mkfifo', [endless])
    const workers = start()
    await workers.whenIdle()
    const ahead = workers.runAhead(shrink(endless))
    const gaveWay = expect(ahead).rejects.toMatchObject({ name: 'PictureTaskPreempted' })
    const requested = workers.run(shrink('/nowhere'))
    let isIdle = false
    const idle = workers.whenIdle().then(() => {
      isIdle = true
    })
    await expect(workers.runAhead(shrink('/nowhere'))).rejects.toMatchObject({ name: 'PictureTaskPreempted' })
    expect(isIdle).toBe(false)
    expect(await requested).toEqual({ outcome: 'unreadable' })
    await gaveWay
    await idle
    expect(await workers.runAhead(shrink('/nowhere'))).toEqual({ outcome: 'unreadable' })
  })

  test('one takes no place of a task of a request', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const endless = join(directory.path, 'endless')
    execFileSync('/usr/bin/mkfifo', [endless])
    const workers = start({ queue: 1 })
    const ahead = expect(workers.runAhead(shrink(endless))).rejects.toMatchObject({
      name: 'PictureTaskPreempted',
    })
    const results = await Promise.allSettled([1, 2, 3].map(() => workers.run(shrink('/nowhere'))))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
    await ahead
  })

  test('one that finds no free process does not wait for one, so it takes no place in the queue', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const endless = join(directory.path, 'endless')
    execFileSync('/usr/bin/mkfifo', [endless])
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const workers = start({ queue: 1 })
    await workers.run(shrink('/nowhere'))
    // The idle process is being ended.
    vi.advanceTimersByTime(60_000)
    const preempted = { name: 'PictureTaskPreempted' }
    await expect(workers.runAhead(shrink('/nowhere'))).rejects.toMatchObject(preempted)
    await workers.whenIdle()
    const running = expect(workers.runAhead(shrink(endless))).rejects.toThrow('the service is stopping')
    await expect(workers.runAhead(shrink('/nowhere'))).rejects.toMatchObject(preempted)
    workers.close()
    await running
  })

  test('a stop ends the one that runs, which is not a failure of its picture', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const endless = join(directory.path, 'endless')
    execFileSync('/usr/bin/mkfifo', [endless])
    const workers = start()
    const refused = expect(workers.runAhead(shrink(endless))).rejects.toMatchObject({
      name: 'PictureWorkersBusy',
    })
    const requested = expect(workers.run(shrink('/nowhere'))).rejects.toThrow('the service is stopping')
    const idle = workers.whenIdle()
    workers.close()
    await Promise.all([refused, requested, idle, workers.whenIdle()])
    await expect(workers.runAhead(shrink('/nowhere'))).rejects.toMatchObject({ name: 'PictureWorkersBusy' })
  })
})

describe('processes that decode pictures', () => {
  test.each(Object.entries(others))(
    'V3 the decoder of %s is disabled, whatever the name of the file',
    async (_type, text) => {
      await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
      const path = join(directory.path, 'a.jpg')
      await writeFile(path, text)
      const workers = start()
      expect(await workers.run(shrink(path))).toEqual({ outcome: 'unreadable' })
      expect(await workers.run({ type: 'measure', picture: path })).toEqual({ outcome: 'unreadable' })
    },
  )

  test('V6, V8 only the first directory of a TIFF is read, however many there are', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const workers = start({ timeout: 3_000 })
    const size = { width: 6, height: 8 }
    for (const directories of [1, 3, 200_000]) {
      const bytes = crowdedTiff(directories)
      const path = join(directory.path, `${directories}.tif`)
      await writeFile(path, bytes)
      const pictures = directories < 10 ? [path, bytes] : [path]
      for (const picture of pictures) {
        expect(await workers.run({ type: 'measure', picture })).toEqual({ outcome: 'measured', size })
        const task = { ...shrink(path), picture, recorded: { width: null, height: null, thumbhash: null } }
        expect(await workers.run(task)).toMatchObject({ outcome: 'resized', preview: size })
      }
    }
    const damaged = crowdedTiff(1).subarray(0, 60)
    expect(await workers.run({ type: 'measure', picture: damaged })).toEqual({ outcome: 'unreadable' })
  })

  test('V6 a process that exceeds the time limit is ended, and the next task gets a new one', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-pictures-'))
    const endless = join(directory.path, 'endless')
    execFileSync('/usr/bin/mkfifo', [endless])
    const hasty = start({ timeout: 1 })
    const timeout = { name: 'PictureOverLimits', isTimeout: true }
    await expect(hasty.run(shrink(endless))).rejects.toMatchObject(timeout)
    await expect(hasty.run(shrink(endless))).rejects.toMatchObject({ name: 'PictureOverLimits' })
  })

  test('V6 tasks beyond the length of the queue are refused, the others run in order', async () => {
    const workers = start({ queue: 2 })
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => workers.run(shrink('/nowhere'))))
    const outcomes = results.map((result) =>
      result.status === 'fulfilled' ? result.value.outcome : result.reason.name,
    )
    expect(outcomes).toEqual([
      'unreadable',
      'unreadable',
      'unreadable',
      'PictureWorkersBusy',
      'PictureWorkersBusy',
    ])
  })

  test('V6, V8 a task that exceeds the queue timeout is refused and does not delay the next', async () => {
    const workers = start({ queueTimeout: 1 })
    const results = await Promise.allSettled([1, 2].map(() => workers.run(shrink('/nowhere'))))
    expect(results).toMatchObject([{ status: 'fulfilled' }, { reason: { name: 'PictureWorkersBusy' } }])
    expect(await workers.run(shrink('/nowhere'))).toEqual({ outcome: 'unreadable' })
  })

  test('V6 waiting tasks are refused when the service stops', async () => {
    const workers = start({ queueTimeout: 600_000 })
    const runs = [1, 2].map(() => workers.run(shrink('/nowhere')))
    const settled = Promise.allSettled(runs)
    workers.close()
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await expect(workers.run(shrink('/nowhere'))).rejects.toMatchObject({ name: 'PictureWorkersBusy' })
  })

  test('V6 a task is not given to an idle process that is being ended', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const workers = start()
    await workers.run(shrink('/nowhere'))
    vi.advanceTimersByTime(60_000)
    expect(await workers.run(shrink('/nowhere'))).toEqual({ outcome: 'unreadable' })
  })

  test('V6 if no process can be started, tasks are refused as busy, and later tasks run', async () => {
    const file = join(import.meta.dirname, '../../src/pictures/picture-workers.ts')
    const program = `
      const { openSync, closeSync } = await import('node:fs')
      const { PictureWorkers } = await import(${JSON.stringify(file)})
      const workers = new PictureWorkers({ workers: 1, queue: 9, queueTimeout: 20000, timeout: 20000, memory: 1e9, niceness: 0 })
      const opened = []
      try { for (;;) opened.push(openSync('/dev/null')) } catch {}
      const task = { type: 'measure', path: '/nowhere' }
      const refused = await Promise.allSettled([1, 2, 3].map(() => workers.run(task)))
      for (const one of opened) closeSync(one)
      const { outcome } = await workers.run(task)
      workers.close()
      console.log([...refused.map(({ reason }) => reason?.name), outcome].join(' '))`
    const output = execFileSync(
      'sh',
      ['-c', 'ulimit -n 100 && exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', program],
      { encoding: 'utf8' },
    )
    expect(output.trim()).toBe('PictureWorkersBusy PictureWorkersBusy PictureWorkersBusy unreadable')
  })

  test('V6 the processes end with the service, however it ends', async () => {
    const file = join(import.meta.dirname, '../../src/pictures/picture-workers.ts')
    const program = `
      const { PictureWorkers } = await import(${JSON.stringify(file)})
      const workers = new PictureWorkers({ workers: 1, queue: 1, queueTimeout: 20000, timeout: 20000, memory: 1e9, niceness: 0 })
      await workers.run({ type: 'measure', path: '/nowhere' })
      console.log('running')`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(parent.stdout, 'data')
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(parent.pid)], { encoding: 'utf8' })
    const pids = children.trim().split(/\s+/).map(Number)
    expect(pids).toHaveLength(1)
    parent.kill('SIGKILL')
    for (const pid of pids) await expect.poll(() => isRunning(pid)).toBe(false)
  })
})

/** A zombie process counts as ended. */
function isRunning(pid: number): boolean {
  try {
    const state = execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    return !state.startsWith('Z')
  } catch {
    return false
  }
}
