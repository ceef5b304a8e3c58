import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { read } from '../architecture/sources.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters } from '../harness/pictures.ts'
import { bin } from '../harness/server.ts'
import { startBy } from '../harness/started-by.ts'
import { needTools } from '../harness/tools.ts'
import { readItem } from '../harness/wire.ts'

const run = promisify(execFile)
const unit = read('docs/operations/mediabucket.service')
const settingOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

/** The unit file with a program that exists on this machine. */
async function installedUnit() {
  const directory = await temporaryDirectory()
  const path = join(directory.path, 'mediabucket.service')
  await writeFile(path, unit.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`))
  return { ...directory, unitPath: path }
}

test('the unit for systemd is valid, and what it allows is little', async () => {
  needTools('systemd-analyze')
  await using installed = await installedUnit()
  const { stdout, stderr } = await run('systemd-analyze', [
    'verify',
    '--man=no',
    '--recursive-errors=no',
    installed.unitPath,
  ])
  expect(stdout + stderr).not.toContain('mediabucket.service:')
  // Exposure from 0 to 100; without the hardening it is 96.
  await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', installed.unitPath])
})

test('O5 systemd waits longer than the service takes to stop', () => {
  const seconds = (text: string) => Number(/^(\d+)s$/.exec(text)?.[1])
  const fallback = /`MEDIABUCKET_SHUTDOWN_TIMEOUT` \| `(\w+)`/.exec(read('docs/settings.md'))?.[1] ?? ''
  expect(seconds(settingOf('TimeoutStopSec'))).toBeGreaterThan(seconds(fallback) + 5)
  expect(settingOf('ExecStart')).toBe('mediabucket serve')
})

/** The names of a set of system calls, and of the sets in it. */
async function callsOf(set: string): Promise<Set<string>> {
  const { stdout } = await run('systemd-analyze', ['syscall-filter', set])
  const names = stdout
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((name) => name !== '' && !name.startsWith('#'))
  const nested = await Promise.all(names.filter((name) => name.startsWith('@')).map(callsOf))
  return new Set([...names, ...nested.flatMap((calls) => [...calls])])
}

test('V1, O5 the service, its threads and picture processes make no system call that the unit forbids', async () => {
  await using directory = await temporaryDirectory()
  needTools('systemd-analyze', 'strace')
  const trace = join(directory.path, 'trace')
  await using started = await startBy([
    'strace',
    '-f',
    '-c',
    '-S',
    'name',
    '-o',
    trace,
    process.execPath,
    bin,
    'serve',
  ])
  const headers = { authorization: `Bearer ${started.token}`, 'content-type': 'image/png' }
  const body = new Uint8Array(await quarters(600, 400).png().toBuffer())
  const response = await fetch(`${started.url}/api/media`, { method: 'POST', headers, body })
  const variant = await fetch(`${(await readItem(response)).url}?variant=thumb`)
  expect(variant.headers.get('content-type')).toBe('image/webp')
  process.kill(started.pid(), 'SIGTERM')
  expect(await started.exited).toEqual([0, null])
  const made = (await readFile(trace, 'utf8'))
    .split('\n')
    .flatMap((line) => /^\s*[\d.]+ .*?(\w+)$/.exec(line)?.[1] ?? [])
  const allowed = await callsOf(settingOf('SystemCallFilter'))
  expect(made.length).toBeGreaterThan(40)
  expect(made.filter((name) => name !== 'total' && !allowed.has(name))).toEqual([])
})
