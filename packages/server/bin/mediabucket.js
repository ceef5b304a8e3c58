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
// V8 reads the bound of its young generation when it starts, and left alone takes 128 MB for it once thousands of
// uploads are open, most of them empty. The same process starts anew with a bound of its own, on a service's start alone.
const flag = '--max-semi-space-size'
// Not where a parent speaks with it: the channel would be lost.
const isBound = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((text) =>
  /max[-_]semi[-_]space[-_]size/.test(text),
)
const canStartAnew = process.execve && process.platform !== 'win32' && !process.connected
if (process.argv[2] === 'serve' && !isBound && canStartAnew) {
  const [node = process.execPath, ...rest] = process.argv
  process.execve(process.execPath, [node, `${flag}=16`, ...process.execArgv, ...rest], process.env)
}
const { existsSync } = await import('node:fs')
const source = new URL('../src/cli/main.ts', import.meta.url)
const { main } = await import(existsSync(source) ? source.href : '../dist/cli/main.js')
await main(process.argv.slice(2))
