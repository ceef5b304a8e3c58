#!/usr/bin/env node
// Plain JavaScript, so that an old Node can read at least this far and say what it lacks.
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(
    `mediabucket needs Node.js 24 or newer; this is ${process.versions.node} (${process.execPath}).\n` +
      'In a clone, `npm install` brings the right one for npm scripts and npx on Linux and Apple silicon;\n' +
      'elsewhere install it from https://nodejs.org/ and try again.',
  )
  process.exit(1)
}
// File syncs, reads and hashes share libuv's pool, whose size is read once, at its first use. Four is too few
// when thirty uploads sync at a time.
process.env.UV_THREADPOOL_SIZE ??= '16'
// Flags of Node for a service. V8 reads the bound of its young generation when it starts, and without one takes 128 MB
// for it once thousands of uploads are open. The same process restarts with them; other commands start sooner without.
const flags = ['--disable-sigusr1', '--max-semi-space-size=16']
const words = process.argv.slice(
  process.argv[2] === '--env-file' ? 4 : process.argv[2]?.startsWith('--env-file=') ? 3 : 2,
)
if (words[0] === 'serve') {
  const given = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(' ')].map((text) =>
    text.replaceAll('_', '-').replace(/=.*/, ''),
  )
  const missing = flags.filter((flag) => !given.includes(flag.replace(/=.*/, '')))
  // Where a parent process uses an IPC channel, the restart would lose it.
  const canRestart = process.execve && process.platform !== 'win32' && !process.connected
  if (missing.length > 0 && canRestart) {
    const [node = process.execPath, ...rest] = process.argv
    process.execve(process.execPath, [node, ...missing, ...process.execArgv, ...rest], process.env)
  }
  // Without the flag, Node opens its debugger's port on SIGUSR1 unless a listener is there.
  process.on('SIGUSR1', () => undefined)
}
const { existsSync } = await import('node:fs')
const source = new URL('../src/cli/main.ts', import.meta.url)
const { main } = await import(existsSync(source) ? source.href : '../dist/cli/main.js')
await main(process.argv.slice(2))
