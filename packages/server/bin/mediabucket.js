#!/usr/bin/env node
// Plain JavaScript, so that an old Node can read at least this far and say what it lacks.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
// Earlier versions cannot store a file without bytes, or report a response as sent whose connection was lost.
if (major < 24 || major === 25 || minor < ({ 24: 20, 26: 7 }[major] ?? 0)) {
  console.error(
    `mediabucket needs Node.js 24.20 or newer of 24, or 26.7 or newer; this is ${process.versions.node} (${process.execPath}).\n` +
      'In a clone, `npm install` brings the right one for npm scripts and npx on Linux and Apple silicon;\n' +
      'elsewhere install it from https://nodejs.org/ and try again.',
  )
  process.exit(1)
}
// File syncs, reads and hashes share libuv's pool, whose size is read once, at its first use. Four is too few
// when thirty uploads sync at a time.
process.env.UV_THREADPOOL_SIZE ??= '16'
// An import of node:fs would load its streams, which the process that restarts does not need.
const { existsSync, lstatSync, mkdirSync } = process.getBuiltinModule('node:fs')
const { enableCompileCache, flushCompileCache } = process.getBuiltinModule('node:module')
const { homedir, totalmem } = process.getBuiltinModule('node:os')
const { isAbsolute, join } = process.getBuiltinModule('node:path')
// By the variable, the threads of the service and the restart below find the compiled modules.
const cache = process.env.NODE_COMPILE_CACHE || compileCache()
if (cache) process.env.NODE_COMPILE_CACHE = cache
// Flags of Node for a service. V8 reads the bound of its young generation when it starts, and without one takes 128 MB
// for it once thousands of uploads are open. The same process restarts with them; other commands start sooner without.
// src/storage/memory.ts has the same number.
const hasLittleMemory = Math.min(totalmem(), process.constrainedMemory()) < 512 * 2 ** 20
const words = process.argv.slice(
  process.argv[2] === '--env-file' ? 4 : process.argv[2]?.startsWith('--env-file=') ? 3 : 2,
)
const isService = words[0] === 'serve'
// With little memory, a backup beside the service must not take much of it either. A sync has the same memory for any number of files.
const isSmall = hasLittleMemory || words[0] === 'sync'
// Only flags that do not change v8.cachedDataVersionTag(): with any other one, V8 compiles the modules of Node.js itself at each start.
const flags = ['--disable-sigusr1', `--max-semi-space-size=${isSmall ? 2 : 16}`]
if (isService || isSmall) {
  const given = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(' ')].map((text) =>
    text.replaceAll('_', '-').replace(/=.*/, ''),
  )
  const missing = flags.filter((flag) => !given.includes(flag.replace(/=.*/, '')))
  // Where a parent process uses an IPC channel, the restart would lose it.
  const canRestart = process.execve && process.platform !== 'win32' && !process.connected
  if (missing.length > 0 && canRestart) {
    // glibc reads it when a process starts.
    if (isSmall) process.env.MALLOC_ARENA_MAX ??= '2'
    const [node = process.execPath, ...rest] = process.argv
    process.execve(process.execPath, [node, ...missing, ...process.execArgv, ...rest], process.env)
  }
}
// Without the flag, Node opens its debugger's port on SIGUSR1 unless a listener is there.
// The service handles SIGHUP once it listens; until then, it must not end the start.
if (isService) for (const signal of ['SIGUSR1', 'SIGHUP']) process.on(signal, () => undefined)
if (cache) enableCompileCache(cache)
const source = new URL('../src/cli/main.ts', import.meta.url)
const { main } = await import(existsSync(source) ? source.href : '../dist/main.js')
await main(process.argv.slice(2))
// Node.js writes the compiled modules when a process exits, but a service may be killed.
if (isService) flushCompileCache()

/**
 * The directory where Node keeps compiled modules for the next start; null where none can be created, or where it is not this user's
 * alone, because Node runs what it finds there. systemd's CacheDirectory= sets the first variable.
 */
function compileCache() {
  const { CACHE_DIRECTORY, XDG_CACHE_HOME } = process.env
  try {
    const directory = CACHE_DIRECTORY || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'mediabucket')
    // An empty or relative HOME would run modules that others have put below the current directory.
    if (!isAbsolute(directory)) return null
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const { uid, mode } = lstatSync(directory)
    const isOwn = process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0)
    return isOwn ? directory : null
  } catch {
    return null
  }
}
