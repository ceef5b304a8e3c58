import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from './app.ts'

// npm run demo:app: the example app at port 3000, with a media service at port 8080 whose data is removed at the end.

const media = 'http://127.0.0.1:8080'
const data = await mkdtemp(join(tmpdir(), 'mediabucket-demo-'))
await using app = await startApp(3000, () => media)
const program = join(import.meta.dirname, '../../packages/server/bin/mediabucket.js')
const service = spawn(process.execPath, [program, 'serve'], {
  env: {
    PATH: process.env['PATH'],
    ...app.mediaSettings,
    MEDIABUCKET_DATA: data,
    MEDIABUCKET_LOG_LEVEL: 'warn',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
})
console.log(`Open ${app.url} and sign in as anna (password anna-password) or ben (ben-password).
Who did what: MEDIABUCKET_DATA=${data} npx mediabucket audit --follow
Ctrl-C ends the app and the service, and removes the data.`)
process.once('SIGINT', () => service.kill('SIGTERM'))
await new Promise((resolve) => service.once('exit', resolve))
await rm(data, { recursive: true, force: true })
