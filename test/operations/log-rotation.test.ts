import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { read } from '../architecture/sources.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { basics, bin } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'

test('O3 logrotate as documented rotates the log of a running service, which continues in the same file', async () => {
  needTools('logrotate')
  await using directory = await temporaryDirectory()
  const path = (name: string) => join(directory.path, name)
  const log = path('mediabucket.log')
  const text = () => readFile(log, 'utf8')
  const configured = read('docs/operations/mediabucket.logrotate').replaceAll('/var/log/mediabucket.log', log)
  await writeFile(path('config'), configured, { mode: 0o600 })

  const stderr = openSync(log, 'a', 0o600)
  const env = { ...basics, MEDIABUCKET_PORT: '0', MEDIABUCKET_DATA: path('data') }
  const child = spawn(process.execPath, [bin, 'serve'], { env, stdio: ['ignore', 'ignore', stderr] })
  onTestFinished(() => void child.kill('SIGKILL'))
  closeSync(stderr)
  const [, port] = await until('it listens', async () => /"port":(\d+).*"listening"/.exec(await text()))
  const ask = async (name: string) => {
    await fetch(`http://127.0.0.1:${port}/${name}`)
    await until(`${name} is logged`, async () => (await text()).includes(`"/${name}"`))
  }
  await ask('before')
  const onPath = { PATH: `${process.env['PATH']}:/usr/sbin` }
  await promisify(execFile)('logrotate', ['--force', '--state', path('state'), path('config')], {
    env: onPath,
  })
  expect(await readFile(`${log}.1`, 'utf8')).toContain('"/before"')
  await ask('after')
  const lines = (await text()).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line).path)).toEqual(['/after'])
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})
